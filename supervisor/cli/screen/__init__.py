"""What `marin-sup run` shows: a live picture on a terminal, plain lines anywhere else, and a summary at the end."""
