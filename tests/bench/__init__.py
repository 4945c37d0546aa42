"""Measurements: `python -m tests.bench TOPIC`. Each topic is one file; every number has its rounds and its median.

Nothing here asserts: a benchmark says what is, tests say what must be.
"""
