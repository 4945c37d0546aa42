"""The command `marin-sup`: one file per command below `commands/`, what `run` shows on a terminal below `screen/`.

Commands read what a run's directory holds and write requests into it; they decide nothing. Whatever is slow to import
(pydantic, rich, the supervisor itself) is imported by the command that needs it, when it runs.
"""
