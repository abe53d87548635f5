"""The record of a defect's changes, written by its process.

A defect with code that is never reached proves nothing: the checks' statements about such a run are chance.
"""

from __future__ import annotations

import json
import os
from time import monotonic_ns

from chaos.agent.start import Agent

FILE = "defect.jsonl"
"""In the run's directory: one line for each change by the defect."""


def acted(agent: Agent, changed: str) -> None:
    """Record that the defect changes something now. ``changed`` describes it; rank and step are added.

    Called where the change is made and only if it is one: a line is in the kernel's hands when this returns, so that it
    outlives a SIGKILL. Raises OSError if nothing can be written: the change would be made without a record.
    """
    line = {
        "mono": monotonic_ns(),
        "attempt": agent.configuration.attempt,
        "rank": agent.place.rank,  # None: the launcher, or the cluster's agent in it
        "pid": os.getpid(),
        "step": None if agent.barriers is None else agent.barriers.step,
        "changed": changed,
    }
    path = os.path.join(os.path.dirname(agent.configuration.history), FILE)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{json.dumps(line)}\n".encode())  # one call: several processes write
    finally:
        os.close(file)
