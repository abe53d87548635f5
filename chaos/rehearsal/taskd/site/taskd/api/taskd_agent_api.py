"""The functions that msrun (MindSpore 2.7 to 2.10) calls when it hands its processes over to the cluster agent.

The implementation is in :mod:`chaos.rehearsal.taskd`.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from chaos.rehearsal.taskd.agent import ClusterAgent
from chaos.rehearsal.taskd.settings import SettingsError, read_settings

_agent: ClusterAgent | None = None


def init_taskd_agent(config: dict[str, Any], cls: Any = None) -> bool:
    """Make the agent.

    Unusable settings end the launcher: on False, msrun would go on without an agent.
    """
    del cls
    global _agent
    try:
        if config.get("Framework") != "MindSpore":
            raise SettingsError(f"it serves MindSpore, not {config.get('Framework')!r}")
        _agent = ClusterAgent(read_settings(os.environ))
    except SettingsError as error:
        # Not an Exception: msrun would catch that and go on.
        sys.exit(f"taskd: the cluster agent cannot start: {error}")
    return True


def register_func(operator: str, func: Callable[..., Any]) -> bool:
    """Register one of msrun's functions: KILL_WORKER, START_ALL_WORKER, START_WORKER_LIST or MONITOR."""
    if _agent is None:
        return False
    _agent.register(operator, func)
    return True


def start_taskd_agent() -> None:
    """Control the job until it has ended; then the launcher exits, with 0 only if every rank did."""
    if _agent is None:
        raise RuntimeError("taskd: init_taskd_agent has not been called")
    code = _agent.run()
    if code:
        sys.exit(code)
