"""The models of a scenario: what its keys are, and what each may hold."""
