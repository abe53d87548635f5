"""Plans for tests that look at little of them: of a job without faults and without protection, but for what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.plan.model import Budget, Plan

_BARE = Plan(
    scenario="",
    source="",
    cell="",
    seed=1,
    ranks=2,
    nodes=1,
    replica_groups=((0, 1),),
    faults=(),
    mechanism=None,
    checkpoint=None,
    resumes=False,
    resume_step=None,
    last_step=12,
    steps_per_epoch=12,
    checkpoint_interval=None,
    protection=(),
    loss_tolerance=0.0,
    baseline="auto",
    budget=Budget(None, {}),
    timings="fast",
    finding=None,
)


def plan_named(name: str, **said: Any) -> Plan:
    """The plan of a scenario of that name; ``said`` are fields of a plan."""
    return replace(_BARE, scenario=name, source=f"{name}.yaml", **said)
