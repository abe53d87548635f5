"""Readers of checkpoints and their records: bytes in, typed facts out, no MindSpore."""
