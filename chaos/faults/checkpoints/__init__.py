"""Faults of saved checkpoints: files that are lost, cut, changed, renamed or older than they should be."""
