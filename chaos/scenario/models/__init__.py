"""The models of a scenario: its keys, and the values that each may hold."""
