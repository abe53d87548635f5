"""What the job has to make a recovery shorter, and what is compared because of it."""

from __future__ import annotations

from chaos.plan.model import Aids, Comparison
from chaos.scenario.models.scenario import Scenario

WATCHDOG_POLL_SECONDS = 2.0
"""How often MindSpore's watchdog looks for communication errors, before it is scaled."""


def plan_aids(scenario: Scenario) -> Aids:
    """The aids that the job has, with the scaled times of its collectives."""
    job, hccl = scenario.job, scenario.job.hccl
    return Aids(
        watchdog=None if hccl is None else hccl.watchdog,
        exec_timeout=None if hccl is None else hccl.exec_timeout * hccl.time_scale,
        poll=None if hccl is None else WATCHDOG_POLL_SECONDS * hccl.time_scale,
        time_scale=None if hccl is None else hccl.time_scale,
        asynchronous_saving=job.storage.asynchronous_saving,
        memory=job.storage.memory,
        graph=job.graph,
        compile_cache=job.compile_cache,
    )


def plan_comparison(scenario: Scenario) -> Comparison | None:
    """What is compared with the other cell, None where the scenario compares nothing."""
    compare = scenario.compare
    return None if compare is None else Comparison(compare.axis, dict(compare.at_most))
