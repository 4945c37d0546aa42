"""`python -m supervisor` is `marin-sup`."""

from supervisor.cli.app import main

if __name__ == "__main__":
    main()
