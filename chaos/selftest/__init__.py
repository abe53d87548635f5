"""Seeded defects of recoveries, which the checks must catch: what shows that a pass can be believed."""
