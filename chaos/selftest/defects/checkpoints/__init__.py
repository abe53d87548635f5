"""Defects of checkpoints and of their contents."""
