"""The node agent: starts and watches this node's ranks, and says by sync what happens to them.

The standard library alone, so that it runs in any trainer's image. It decides nothing about the run: it does what the
newest order says. Every process that it starts dies with it, on every way that it can end.
"""
