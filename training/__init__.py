"""The trainer: a compact mixture-of-experts language model in plain JAX, supervised through the trainer contract alone.

`train` is the command, `loop` the step loop; `model/` is small and meant to be replaced; `checkpoint/` writes and reads
checkpoints. Nothing here imports `supervisor`, reads the environment at import, or touches a device at import.
"""
