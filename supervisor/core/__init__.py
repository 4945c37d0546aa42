"""The decision core: pure functions over frozen values, the same on every host.

`decide(spec, memory, observation, now)` says what to remember and what to ask for. Nothing here does I/O, reads a
clock, draws randomness or logs; times are integer milliseconds of the supervisor's clock. A new policy is a
function, a row and a test.
"""
