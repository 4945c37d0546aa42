"""One command of `marin-sup` per file, imported only when it is called."""
