"""Which mechanism must act, and the vendor's table of what each one needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from chaos.plan.job_effect import JobEffect
from chaos.plan.recovery.registry import Facts, Names, in_order, mechanisms
from chaos.scenario.models.terms import Mechanism

if TYPE_CHECKING:
    from chaos.plan.parts.fault import PlannedFault
    from chaos.scenario.models.scenario import Scenario

DOCUMENT = "MindSpore Transformers, Training High Availability"
"""The vendor's document that the rules of this package come from."""

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
"""Mechanisms that start all ranks again, whatever the others have seen of the fault."""

REPLACING = Names(lambda mechanism: mechanism.starts_ranks and not mechanism.restarts_all)
"""Mechanisms that give the lost ranks new processes, and the others keep theirs."""

ROLLING_BACK = Names(lambda mechanism: mechanism.rolls_back)
"""Mechanisms that take every rank back to a periodic checkpoint, in its own process."""

IN_STEP = Names(lambda mechanism: mechanism.in_step)
"""Mechanisms with which the optimizer's wrapper sums a flag over all ranks before each update.

No rank finishes a step then before every rank has reduced its gradients. Without them the ranks of a replica group wait
for each other only. Source: MindSpore 2.10, ``TrainFaultTolerance.get_optimizer_wrapper``.
"""


def _needing(need: str) -> Facts[str]:
    return Facts(lambda mechanism: mechanism.needs.get(need))


NEEDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {need: _needing(need) for need in ("replicas", "sink size 1", "MindIO")}
)
"""Need → mechanism → why. A mechanism that is missing under a need does not have it.

Source: the document's table of constraints and dependencies.
"""


def switched_on(protection: Iterable[Mechanism]) -> tuple[Mechanism, ...]:
    """Return the mechanisms that are on, those that another one implies included, in the order of the first mention."""
    on: dict[Mechanism, None] = {}
    for mechanism in protection:
        on[mechanism] = None
    for mechanism in tuple(on):
        if mechanism in IMPLIES:
            on[IMPLIES[mechanism]] = None
    return tuple(on)


def acts_on_error(effect: JobEffect, on: Iterable[Mechanism]) -> Mechanism | None:
    """Return the mechanism that answers an effect online; None if none of those that are on does."""
    on = tuple(on)
    return next(
        (mechanism.name for mechanism in in_order() if effect.answered_as in mechanism.repairs and mechanism.is_on(on)),
        None,
    )


def answers_online(scenario: Scenario, fault: PlannedFault, on: Iterable[Mechanism]) -> Mechanism | None:
    """The mechanism that answers a fault while every process lives on; None if none of those that are on does."""
    name = acts_on_error(fault.effect, on)
    condition = None if name is None else mechanisms()[name].repairs_if
    return name if condition is None or condition(scenario, fault) else None


def need_message(mechanism: str, need: str) -> str | None:
    """Why a mechanism has a need, quoting the document; None if it has not. One message for each cell of the table."""
    why = NEEDS[need].get(mechanism)
    return why and f"{mechanism} needs {need} ({DOCUMENT}, constraints and dependencies): {why}"
