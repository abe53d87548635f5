"""Defects of what the mechanisms do, and of what they leave undone."""
