"""The checkpoints of a run: their owners, their steps, their completeness and their content."""
