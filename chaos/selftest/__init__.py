"""Seeded defects of recoveries, which the checks must catch: the evidence that a pass can be believed."""
