"""Faults of the directory in which a job saves."""
