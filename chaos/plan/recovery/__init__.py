"""The mechanisms that answer the faults, and their duties."""
