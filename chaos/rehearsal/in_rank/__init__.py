"""Alterations inside a rank of a rehearsal."""
