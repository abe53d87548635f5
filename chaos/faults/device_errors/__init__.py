"""Errors that the device reports to its rank.

Each is a ``RuntimeError`` with MindSpore's text, raised at the framework's seam. MindSpore's reaction is
genuine.
"""
