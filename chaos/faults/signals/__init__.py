"""Signals to a rank's process, and other ways of stopping it."""
