"""What the job has to make a recovery shorter."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.scenario.models.scenario import Scenario

WATCHDOG_POLL_SECONDS = 2.0
"""How often MindSpore's watchdog looks for communication errors, before it is scaled."""


@dataclass(frozen=True)
class RecoveryOptions:
    """What the job has to make a recovery shorter; each is off by default, as a rehearsal has it.

    ``watchdog`` is None where the job's collectives have no timeout that is looked at. ``exec_timeout`` and ``poll``
    are the collective's timeout and the watchdog's poll in seconds, scaled by ``time_scale``.
    """

    watchdog: bool | None = None
    exec_timeout: float | None = None
    poll: float | None = None
    time_scale: float | None = None
    asynchronous_saving: bool = False
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
        asynchronous_saving=job.storage.asynchronous_saving,
        memory=job.storage.memory,
        graph=job.graph,
        compile_cache=job.compile_cache,
    )
