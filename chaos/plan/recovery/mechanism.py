"""The mechanism that must act, and the vendor's table of the needs of each mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from chaos.plan.job_effect import JobEffect
from chaos.plan.recovery.registry import Facts, Names, in_order, mechanisms
from chaos.plan.recovery.vendor import MINDSPORE, Vendor

if TYPE_CHECKING:
    from chaos.plan.parts.fault import PlannedFault
    from chaos.scenario.models.scenario import Scenario
    from chaos.scenario.models.terms import Mechanism

PAUSING = Names(lambda mechanism: mechanism.pauses)
"""Mechanisms that hold the training back and let it go on, without losing anything."""

ONLINE = Names(lambda mechanism: mechanism.in_place)
"""Mechanisms that repair a rank while its process lives on, and save nothing."""

SAVING = Names(lambda mechanism: mechanism.saves)
"""Mechanisms that leave an end-of-life checkpoint."""

IMPLIES: Mapping[str, str] = Facts(lambda mechanism: next(iter(SAVING)) if mechanism.safeguarded else None)
"""Mechanisms that switch another one on: the end-of-life checkpoint is their last safeguard."""

REPAIRING = Names(lambda mechanism: "REPAIR" in mechanism.operations)
"""Mechanisms that the SDK's controller calls a repair: MindSpore goes back into its training loop within the launch."""

RESTARTING = Names(lambda mechanism: mechanism.restarts_all)
"""Mechanisms that start all ranks again, whatever the other ranks have seen of the fault."""

MEETING_DAMAGE = Names(lambda mechanism: mechanism.meets_damage)
"""Mechanisms that start all ranks again from a checkpoint that a fault may have damaged before."""

REPLACING = Names(lambda mechanism: mechanism.starts_ranks and not (mechanism.restarts_all or mechanism.of_launcher))
"""Mechanisms by which the cluster's agent gives the lost ranks new processes, while the other ranks keep theirs."""

REJOINING = Names(lambda mechanism: mechanism.rejoins)
"""Mechanisms with which the other ranks train on without the lost ranks, which come back at a later step."""

NAMING = Names(lambda mechanism: mechanism.names_cause)
"""Mechanisms whose actor names the process whose failure it takes for the root cause."""

BY_SURVIVORS = Names(lambda mechanism: mechanism.by_survivors)
"""Mechanisms that act on the errors of other ranks, too, so that a rank which ends well too early is noticed."""

ROLLING_BACK = Names(lambda mechanism: mechanism.rolls_back)
"""Mechanisms that take every rank back to a periodic checkpoint, in its own process."""

IN_STEP = Names(lambda mechanism: mechanism.in_step)
"""Mechanisms with which the optimizer's wrapper sums a flag over all ranks before each update.

Then no rank finishes a step before every rank has reduced its gradients. Without these mechanisms the ranks of a
replica group wait only for each other. Source: MindSpore 2.10, ``TrainFaultTolerance.get_optimizer_wrapper``.
"""


def _needing(need: str) -> Facts[str]:
    return Facts(lambda mechanism: mechanism.needs.get(need))


NEEDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {need: _needing(need) for need in ("replicas", "sink size 1", "MindIO")}
)
"""Need → mechanism → why. A mechanism missing under a need does not have the need.

Source: the document's table of constraints and dependencies.
"""


def switched_on(protection: Iterable[Mechanism]) -> tuple[Mechanism, ...]:
    """Return the mechanisms that are on, implied ones included, in the order of the first mention."""
    on: dict[Mechanism, None] = {}
    for mechanism in protection:
        on[mechanism] = None
    for mechanism in tuple(on):
        if mechanism in IMPLIES:
            on[IMPLIES[mechanism]] = None
    return tuple(on)


def acts_on_error(effect: JobEffect, on: Iterable[Mechanism]) -> Mechanism | None:
    """Return the mechanism that answers an effect online; None if no mechanism that is on does."""
    on = tuple(on)
    return next(
        (mechanism.name for mechanism in in_order() if effect.answered_as in mechanism.repairs and mechanism.is_on(on)),
        None,
    )


def answers_online(scenario: Scenario, fault: PlannedFault, on: Iterable[Mechanism]) -> Mechanism | None:
    """Return the mechanism that answers a fault while every process lives on; None if no mechanism that is on does."""
    name = acts_on_error(fault.effect, on)
    condition = None if name is None else mechanisms()[name].repairs_if
    return name if condition is None or condition(scenario, fault) else None


def need_message(mechanism: str, need: str, vendor: Vendor = MINDSPORE) -> str | None:
    """Return why a mechanism has a need, quoting the document; None without the need.

    Each cell of the table has one message.
    """
    why = NEEDS[need].get(mechanism)
    return why and f"{mechanism} needs {need} ({vendor.document}, constraints and dependencies): {why}"
