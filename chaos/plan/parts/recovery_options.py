"""The options of the job that shorten a recovery."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.scenario.models.scenario import Scenario

WATCHDOG_POLL_SECONDS = 2.0
"""Seconds between two looks of MindSpore's watchdog for communication errors, before scaling."""


@dataclass(frozen=True)
class RecoveryOptions:
    """The options of the job that shorten a recovery; each is off by default, as in a rehearsal.

    ``watchdog`` is None where nothing checks a timeout of the job's collectives. ``exec_timeout`` and ``poll`` are the
    collective's timeout and the watchdog's poll in seconds, scaled by ``time_scale``. ``asynchronous_saving`` is None
    where a script of the user's own decides whether it saves in the background.
    """

    watchdog: bool | None = None
    exec_timeout: float | None = None
    poll: float | None = None
    time_scale: float | None = None
    asynchronous_saving: bool | None = False
    memory: bool = False
    graph: bool = False
    compile_cache: bool = False


def recovery_options(scenario: Scenario) -> RecoveryOptions:
    """Return the recovery options that the job has, with the scaled times of its collectives."""
    job, hccl = scenario.job, scenario.job.hccl
    return RecoveryOptions(
        watchdog=None if hccl is None else hccl.watchdog,
        exec_timeout=None if hccl is None else hccl.exec_timeout * hccl.time_scale,
        poll=None if hccl is None else WATCHDOG_POLL_SECONDS * hccl.time_scale,
        time_scale=None if hccl is None else hccl.time_scale,
        asynchronous_saving=job.storage.asynchronous_saving or (None if job.script is not None else False),
        memory=job.storage.memory,
        graph=job.graph,
        compile_cache=job.compile_cache,
    )
