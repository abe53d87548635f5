"""Random scenarios of recoveries that must be good: drawn by a seed, kept only if the plan says that they recover.

For soaks that look for false alarms. Each draw is a proposal; the plan decides whether it is possible at all, and
whether training goes on after it. The same seed and number give the same scenario again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import resolve_name
from random import Random
from types import MappingProxyType
from typing import Any

from chaos.jobs.kind import job_kind
from chaos.mechanisms.drawing import Recipe
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import REPAIRING, ROLLING_BACK
from chaos.plan.recovery.registry import mechanisms

Proposal = dict[str, Any]
"""A scenario's keys beside its name, as plain data."""


def propose(draw: Random, *, kind: str, mechanism: str, variety: bool) -> Proposal:
    """Return a random scenario for a job of ``kind`` that ``mechanism`` is meant to answer; it may be impossible.

    With ``variety`` the job itself varies widely too. Without, it is one of a few, which share their fault-free runs.
    """
    ranks = draw.choice((2, 2, 3, 4, 4) if variety else (2, 2, 4))
    cluster: dict[str, Any] = {"ranks": ranks}
    if ranks == 4 and draw.random() < 0.25:
        cluster["parallel"] = {"data_parallel": 2, "model_parallel": 2}
    if ranks == 4 and draw.random() < 0.25:
        cluster["nodes"] = 2
    job: dict[str, Any] = {
        "kind": kind,
        "steps": draw.randint(9, 24) if variety else draw.choice((10, 14)),
        "seed": draw.randint(1, 100_000) if variety else draw.randint(1, 2),
    }
    if draw.random() < 0.25:
        job["steps_per_epoch"] = draw.randint(3, job["steps"]) if variety else 5
    job_kind(kind).complete_drawn(draw, cluster, job)
    faults = recipes()[mechanism].complete(draw, cluster, job)
    return {"tags": ["random"], "cluster": cluster, "job": job, "faults": faults}


def recovers(plan: Plan) -> bool:
    """Return whether a run of this plan is a good recovery: a mechanism succeeds, and training goes on to its end."""
    return (
        plan.response.mechanism not in (None, "none")
        and (bool(plan.response.goes_on) or plan.resume.resumes)
        and plan.known_finding.finding is None
    )


def counts_within_epoch(plan: Plan) -> bool:
    """Return whether a fault follows a repair beyond the first epoch.

    After such a repair MindSpore counts steps wrongly (F-06).
    """
    earlier = plan.response.recoveries[:-1]
    return any(
        recovery.mechanism in REPAIRING
        and recovery.succeeds
        and recovery.step is not None
        and recovery.step >= plan.training.steps_per_epoch
        for recovery in earlier
    )


def overwrites_names(plan: Plan) -> bool:
    """Return whether MindSpore saves a later step over an earlier one's file (F-14).

    After a rollback its names count from the beginning of the epoch in which the rollback ends.
    """
    interval, epoch = plan.training.checkpoint_interval, plan.training.steps_per_epoch
    if interval is None:
        return False
    for recovery in plan.response.recoveries:
        if recovery.mechanism in ROLLING_BACK and recovery.succeeds and recovery.step is not None:
            first, left = recovery.step - recovery.step % epoch, plan.training.last_step - recovery.step
            anew = {first + min(count, left) for count in range(interval, left + interval, interval)}
            if anew & set(range(interval, recovery.step + 1, interval)):
                return True
    return False


def acting(plan: Plan) -> str:
    """Return the mechanisms that act, in order: ``UCE, TTP``; a mechanism that is tried in vain is in brackets."""
    return ", ".join(
        recovery.mechanism if recovery.succeeds else f"({recovery.mechanism})" for recovery in plan.response.recoveries
    )


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return the recipes of the mechanisms in their turns."""
    recipes_in_turn: list[Recipe] = [
        resolve_name(place) for mechanism in mechanisms().values() for place in mechanism.recipes
    ]
    return MappingProxyType({recipe.name: recipe for recipe in sorted(recipes_in_turn, key=lambda recipe: recipe.turn)})
