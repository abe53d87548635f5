"""What a defect has changed, written down by the process that it is in.

A defect whose code is never reached proves nothing: what the checks say of such a run is chance.
"""

from __future__ import annotations

import json
import os
from time import monotonic_ns

from chaos.agent.start import Agent

FILE = "defect.jsonl"
"""In the run's directory: one line for each time that the defect has changed something."""


def acted(agent: Agent, changed: str) -> None:
    """Record that the defect changes something now. ``changed`` says what; rank and step are added.

    Called where the change is made and only if it is one: a line is in the kernel's hands when this returns, so that it
    outlives a SIGKILL. Raises OSError where nothing can be written: the change would be made without a word.
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
