"""The resource: what a person writes (`TrainingRun`), read strictly and printed faithfully.

Pydantic types, their quantities, loading and dumping. Decides nothing and does no I/O but reading a manifest;
knows the core only in `convert` and never the wire, the hosts or the commands.
"""
