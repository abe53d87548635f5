"""Faults between the nodes of a job.

``partition`` and ``port-blocked``: No connection is closed. Afterwards TCP sends the packets again.
"""
