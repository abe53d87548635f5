"""Plans for tests that look at little of them: of a job without faults and without protection, but for what is said."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from chaos.plan.model import Plan
from chaos.plan.parts.equivalence import Equivalence
from chaos.plan.parts.explanation import Explanation
from chaos.plan.parts.fault_tolerance import FaultTolerance
from chaos.plan.parts.identity import Identity
from chaos.plan.parts.known_finding import KnownFinding
from chaos.plan.parts.layout import RankLayout
from chaos.plan.parts.response import Budget, Response
from chaos.plan.parts.resume import Resume
from chaos.plan.parts.training import Training

_BARE = Plan(
    identity=Identity("", "", ""),
    layout=RankLayout(2, 1, ((0, 1),)),
    training=Training(seed=1, last_step=12, steps_per_epoch=12, checkpoint_interval=None),
    fault_tolerance=FaultTolerance(()),
    faults=(),
    response=Response(None, Budget(None, {}), "fast"),
    checkpoint=None,
    resume=Resume(False, None),
    equivalence=Equivalence("auto", 0.0),
    known_finding=KnownFinding(None),
    explanation=Explanation(),
)


def plan_with(**values: Any) -> Plan:
    """A plan with these values of its fields, in whichever part they are."""
    return changed(_BARE, **values)


def plan_named(name: str, **said: Any) -> Plan:
    """The plan of a scenario of that name; ``said`` are fields of a plan."""
    return plan_with(scenario=name, source=f"{name}.yaml", **said)


def changed(plan: Plan, **values: Any) -> Plan:
    """The plan with other values of some fields, in whichever part they are: no two parts share a name."""
    changes: dict[str, Any] = {}
    for field in fields(plan):
        part = getattr(plan, field.name)
        if field.name in values:
            changes[field.name] = values.pop(field.name)
        elif is_dataclass(part) and not isinstance(part, type):
            inner = {each.name: values.pop(each.name) for each in fields(part) if each.name in values}
            changes[field.name] = replace(part, **inner) if inner else part
    assert not values, f"no part of a plan has {', '.join(values)}"
    return replace(plan, **changes)
