"""Signals to a rank's process."""
