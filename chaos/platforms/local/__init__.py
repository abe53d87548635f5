"""Platforms of several nodes that are all on this host."""
