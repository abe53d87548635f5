"""Names of events that the harness records and the check ``run`` judges; who records them imports no check."""

from __future__ import annotations

CHANGED = "input.changed"
"""Recorded when what the job is made of is not what it was when the run began."""

PORT_TAKEN = "port.taken"
"""Recorded when a job could not start and somebody else had a port that the harness had chosen for it."""
