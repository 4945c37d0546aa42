"""The local host: a fleet of worker processes on this machine, and everything of a run under one directory.

Adapters only: they translate between processes, files and the core, and decide nothing.
"""
