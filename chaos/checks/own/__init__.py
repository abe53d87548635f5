"""Statements of the user's own checks, as the run has recorded them."""
