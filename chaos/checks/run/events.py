"""Names of events that the harness records and checks judge; the recorder imports no check."""

from __future__ import annotations

CHANGED = "input.changed"
"""Recorded when the job's inputs have changed since the run began."""

NOT_RESTARTED = "supervisor.ended"
"""Recorded when the job's own supervisor has ended, and has started no rank again. The check ``resume`` judges it."""

PORT_TAKEN = "port.taken"
"""Recorded when a job could not start and another process had a port that the harness had chosen for it."""
