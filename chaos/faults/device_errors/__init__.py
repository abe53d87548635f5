"""Faults that the device reports to its rank as an error.

An error of a device is a ``RuntimeError``, raised at the framework's seam. MindSpore classifies it by its text, and
MindSpore's reaction is genuine.
"""
