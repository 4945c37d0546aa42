"""The model: a compact decoder-only mixture of experts. Pure functions on dataclass pytrees; small, and meant to be
replaced.

`model` is what the step uses (init, loss); `attention`, `moe` and `dispatch` are its parts. Nothing here knows steps,
files or ranks, except for `dispatch`, which names the mesh axis that experts are spread over.
"""
