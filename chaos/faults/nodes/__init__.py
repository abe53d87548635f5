"""Faults of a whole node."""
