"""Faults of the directory in which a job saves.

With ``loop``: Before the job starts the directory becomes a disk of its own (a file).
"""
