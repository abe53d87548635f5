"""Faults of a whole node: its end, its pause, its memory, its processors, its volume, its names."""
