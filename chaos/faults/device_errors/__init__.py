"""Faults that the device reports to its rank as an error."""
