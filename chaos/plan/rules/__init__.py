"""Scenarios that a plan refuses: one rule a module."""
