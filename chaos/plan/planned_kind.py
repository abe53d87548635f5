"""The plan's knowledge of a fault kind: one object for each kind that the scenario names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.plan.effect import NONE, Effect
from chaos.plan.job_effect import JobEffect
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.parameters import Parameters
from chaos.plan.rules.required_place import RequiredPlace


@dataclass(frozen=True)
class PlannedKind:
    """One kind of fault in the plan.

    Args:
        effect: its effect on the job of this scenario.
        hazard: its possible disturbance beyond the job.
        parameters: its parameters; None where the kind checks them itself.
        required_place: the required place of its ranks.
        lasting: whether the harness ends it while the job goes on.
        on_rank: its effect on a rank's process, node and card.
    """

    effect: JobEffect
    hazard: Hazard | None = None
    parameters: Parameters | None = None
    required_place: RequiredPlace | None = None
    lasting: bool = False
    on_rank: Effect = NONE


Kinds = Mapping[str, PlannedKind]
"""The kinds of a scenario by their names."""


def effects_of(kinds: Kinds) -> Mapping[str, JobEffect]:
    """Return the effect of each kind."""
    return {name: kind.effect for name, kind in kinds.items()}


def hazards_of(kinds: Kinds) -> Mapping[str, Hazard]:
    """Return the hazard of each kind that has one."""
    return {name: kind.hazard for name, kind in kinds.items() if kind.hazard is not None}


def parameters_of(kinds: Kinds) -> Mapping[str, Parameters]:
    """Return the parameters of each kind that declares them."""
    return {name: kind.parameters for name, kind in kinds.items() if kind.parameters is not None}


def required_places(kinds: Kinds) -> Mapping[str, RequiredPlace]:
    """Return the required place of the ranks, for each kind that declares one."""
    return {name: kind.required_place for name, kind in kinds.items() if kind.required_place is not None}


def lasting_of(kinds: Kinds) -> frozenset[str]:
    """Return the kinds that the harness ends while the job goes on."""
    return frozenset(name for name, kind in kinds.items() if kind.lasting)
