"""Names of events that the harness records and the check ``run`` judges; the recorder imports no check."""

from __future__ import annotations

CHANGED = "input.changed"
"""Recorded when the job's inputs have changed since the run began."""

PORT_TAKEN = "port.taken"
"""Recorded when a job could not start and another process had a port that the harness had chosen for it."""
