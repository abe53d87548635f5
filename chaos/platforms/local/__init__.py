"""Platforms of one or several nodes that are all on this host."""
