"""Puts the defect that the environment names into this process; an extension of the agent."""

from __future__ import annotations

import os
import traceback
from importlib import import_module

from chaos.agent.leaving import leave
from chaos.agent.start import Agent

VARIABLE = "CHAOS_SEEDED_DEFECT"
"""Names the defect, ``package.module:function``. Without it nothing is changed."""


def install(agent: Agent) -> None:
    """Apply the defect. A defect that is not found ends the process, since a run without it would prove nothing."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    module, _, function = name.partition(":")
    try:
        getattr(import_module(module), function)(agent)
    except Exception:  # raised further it would be lost: Python goes on without its sitecustomize
        leave(1, traceback.format_exc())
