"""Kinds of memory errors: by the device's strategy, and by their time."""

from __future__ import annotations

from chaos.plan.family_rules import Occurrence
from chaos.plan.job_effect import IN_UPDATE, LOW_LEVEL, MEMORY, MEMORY_ERROR, JobEffect
from chaos.plan.points import PHASE_ORDER
from chaos.plan.problems import Problems
from chaos.scenario.errors import suggest

STRATEGIES = ("high level", "low level")
"""The device's strategies for a memory error: memory in use was lost, or none was."""

_UPDATE = PHASE_ORDER.index("optimizer.update")


def settle_memory(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """Return the effect of a scenario's memory error; other faults keep their effect. Notes wrong parameters.

    An error with a time cannot be repaired when it falls into the optimizer's update: MindSpore asks the SDK with the
    times of both (error 507054). An error at an SDK's handler comes outside the update.
    """
    if effect.raises != MEMORY_ERROR:
        return effect
    fault, path = occurrence.fault, occurrence.path
    for name in fault.parameters.keys() - {"strategy"}:
        hint = suggest(name, ["strategy"]) or "its only parameter is strategy"
        problems.add(f"{path}.parameters.{name}", f"a {effect} has no parameter {name!r}", text=name, hint=hint)
    strategy = fault.parameters.get("strategy", STRATEGIES[0])
    if strategy not in STRATEGIES:
        problems.add(
            f"{path}.parameters.strategy",
            f"the device knows no strategy {strategy!r} for a memory error",
            text=strategy,
            hint=f"use one of: {', '.join(STRATEGIES)}",
        )
    if effect.tells_time and fault.trigger.step is not None and occurrence.moment.earliest.phase == _UPDATE:
        return IN_UPDATE
    if strategy == STRATEGIES[1]:
        return LOW_LEVEL
    return effect if effect.loses_memory else MEMORY
