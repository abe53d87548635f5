"""Signals to a rank's process, and what stops it as one does."""
