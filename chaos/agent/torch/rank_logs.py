"""In torchrun: each rank's output goes to a file of its own, ``worker_RANK.log`` beside the launcher's.

torchrun's own option truncates the file of a rank that it starts again, and names it by the local rank. Here the log of
an earlier process is kept as ``worker_RANK.before-N.log``. torchrun also deletes its files of an earlier start with the
same number (``attempt_N``): where another node was the reason for the restart, a node does not count on. They are kept
as ``attempt_N.before-M``. A job kind names this module among its extensions.
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
        agent.imports.watch("torch.distributed.elastic.agent.server.local_elastic_agent", _keep_files)


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


def _keep_files(module: ModuleType) -> None:
    """Keep the files of every start of the ranks (``error.json``)."""
    agent = getattr(module, "LocalElasticAgent", None)
    start = getattr(agent, "_start_workers", None)
    if agent is None or start is None:
        return  # a release without it: nothing is kept, and nothing is lost that the harness needs

    @functools.wraps(start)
    def start_and_keep(launcher: Any, worker_group: Any, *args: Any, **kwargs: Any) -> Any:
        # In PyTorch 2.1 the launcher has the directory, later its specification of logs does.
        directory = getattr(getattr(launcher, "_logs_specs", launcher), "_run_log_dir", None) or getattr(
            launcher, "_log_dir", None
        )
        left = getattr(launcher, "_remaining_restarts", None)
        if isinstance(directory, str) and isinstance(left, int):
            _set_aside(os.path.join(directory, f"attempt_{worker_group.spec.max_restarts - left}"), "")
        return start(launcher, worker_group, *args, **kwargs)

    agent._start_workers = start_and_keep


def _new_log(directory: str, rank: int) -> str:
    """Return the path of a rank's log, after the log of its earlier process has been renamed."""
    base = os.path.join(directory, f"worker_{rank}")
    _set_aside(base, ".log")
    return f"{base}.log"


def _set_aside(base: str, suffix: str) -> None:
    """Rename what is at a path, with ``.before-N`` before the suffix; nothing where there is nothing."""
    if os.path.exists(f"{base}{suffix}"):
        number = 1
        while os.path.exists(earlier := f"{base}.before-{number}{suffix}"):
            number += 1
        os.rename(f"{base}{suffix}", earlier)
