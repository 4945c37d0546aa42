"""What living ranks show from outside, so that the supervisor can name who is behind a hang before they are killed.

One file a provider (`process_state`, `python_stack`); a new one is one file and one row of `gather.PROVIDERS`. Nothing
here judges: it looks, within a second, and harms no rank.
"""
