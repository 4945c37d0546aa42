"""What supervisor and worker say to each other (sync), and what both expect of a trainer (the contract).

The standard library alone: this package ships into the user's image beside the worker. It translates and
checks; it decides nothing. The trainer contract is `schema/trainer-v1.json`.
"""
