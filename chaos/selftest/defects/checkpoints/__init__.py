"""Defects of checkpoints and of what is in them."""
