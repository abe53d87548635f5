"""The user's own code in a run: checks in Python and commands, each of them only where the user allows it."""
