"""Faults that the device reports to its rank as an error.

The error is a ``RuntimeError`` with MindSpore's text for it, raised at the framework's seam. MindSpore's reaction is
genuine.
"""
