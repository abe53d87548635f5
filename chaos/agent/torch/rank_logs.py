"""In torchrun: each rank's output goes to a file of its own, ``worker_RANK.log`` beside the launcher's.

torchrun's own option truncates the file of a rank that it starts again, and names it by the local rank. Here the log of
an earlier process is kept as ``worker_RANK.before-N.log``. A job kind names this module among its extensions.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any

from chaos.agent.configuration import place_of
from chaos.agent.start import Agent


def install(agent: Agent) -> None:
    """Give every rank that this launcher starts a log, unless the launcher already gave it one."""
    directory = agent.configuration.stacks
    if agent.place.rank is None and agent.place.role == "other" and directory is not None:
        agent.imports.watch("subprocess", functools.partial(_hook, directory))


def _hook(directory: str, module: ModuleType) -> None:
    popen = module.Popen
    start = popen.__init__

    @functools.wraps(start)
    def start_with_log(process: Any, *args: Any, **kwargs: Any) -> None:
        place = place_of(kwargs.get("env") or {})
        if place.rank is None or kwargs.get("stdout") is not None or len(args) > 4:
            start(process, *args, **kwargs)
            return
        with open(_new_log(directory, place.rank), "wb", buffering=0) as log:
            kwargs["stdout"] = log
            kwargs["stderr"] = kwargs.get("stderr") or module.STDOUT
            start(process, *args, **kwargs)

    popen.__init__ = start_with_log


def _new_log(directory: str, rank: int) -> str:
    """Return the path of a rank's log, after the log of its earlier process has been renamed."""
    path = os.path.join(directory, f"worker_{rank}.log")
    if os.path.exists(path):
        number = 1
        while os.path.exists(earlier := os.path.join(directory, f"worker_{rank}.before-{number}.log")):
            number += 1
        os.rename(path, earlier)
    return path
