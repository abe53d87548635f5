"""The fault schedule: ids, targets resolved to ranks, and the moment of every fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaos.plan.family_rules import Occurrence, settled
from chaos.plan.job_effect import NONE, OF_KINDS, STRANDING, JobEffect, may_be_planned
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.points import Moment
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import ONLINE, answers_online, switched_on
from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import Layout
from chaos.plan.topology.targets import Resolved, resolve
from chaos.plan.triggers import read_moments
from chaos.scenario.errors import suggest
from chaos.scenario.models.fault import Trigger
from chaos.scenario.models.ids import fault_ids
from chaos.scenario.models.scenario import MAX_RANKS, Scenario
from chaos.scenario.models.terms import Mechanism

if TYPE_CHECKING:
    from chaos.plan.traits import JobTraits


@dataclass(frozen=True)
class Scheduled:
    """A planned fault with everything that the plan derives from it: its effect, its moment, its path in the scenario.

    ``repaired_by`` is the mechanism that answers a raised error, or an abnormal result, while the processes live on;
    None where there is none.
    """

    fault: PlannedFault
    effect: JobEffect
    moment: Moment
    path: str
    repaired_by: Mechanism | None = None

    @property
    def handler(self) -> str | None:
        """The SDK's handler at whose entry it is made, inside a recovery; None for a fault outside handlers."""
        parts = [self.fault.trigger, *self.fault.trigger.get("all", ())]
        return next((part["handler"] for part in parts if "handler" in part), None)

    @property
    def raised(self) -> bool:
        """Whether it is an error raised in its ranks."""
        return self.effect.raises is not None

    @property
    def lethal(self) -> bool:
        """Whether ranks are lost to the job by it: ranks with an unrepaired error are, and ranks that hang."""
        effect = self.effect
        return effect.silences or effect.hangs or effect.strands or (self.raised and self.repaired_by is None)


MAX_HIT = 2 * MAX_RANKS
"""Most ranks that the faults of one scenario hit together; a rank counts as often as it is hit."""


def plan_faults(
    scenario: Scenario,
    layout: Layout,
    groups: Sequence[tuple[int, ...]],
    *,
    effects: Mapping[str, JobEffect],
    traits: JobTraits,
    draw_seed: Callable[[], int],
    problems: Problems,
) -> tuple[Scheduled, ...]:
    """Resolve every fault of the scenario. Faults with a problem are noted and left out.

    Args:
        scenario: the scenario.
        layout: its checked layout.
        groups: its replica groups.
        effects: effect by fault kind; a kind that is missing is unknown.
        traits: what this kind of job can observe, and the processes beside the ranks that it cannot do without.
        draw_seed: gives a fresh seed for a random target without one.
        problems: collects every problem.
    """
    ids = fault_ids(scenario.faults)
    moments = read_moments(scenario, ids, traits.observable, problems)
    on = switched_on(scenario.job.protection)
    if scenario.job.agent and "retry" not in scenario.job.strategies:
        on = tuple(mechanism for mechanism in on if mechanism not in ONLINE)  # the agent chooses another strategy
    scheduled: list[Scheduled] = []
    hit = 0
    for index, (name, fault) in enumerate(zip(ids, scenario.faults, strict=True)):
        path = f"faults.{index}"
        effect = _effect(fault.kind, effects, f"{path}.kind", problems)
        moment = moments[index]
        try:
            target = resolve(fault.target, layout, groups, scenario.job.controller, draw_seed)
        except TopologyError as error:
            problems.add_topology(f"{path}.target", error)
            continue
        hit += len(target.ranks)
        if hit > MAX_HIT:
            problems.add(
                f"{path}.target", f"the faults up to this one hit {hit:,} ranks in all; {MAX_HIT:,} is the limit"
            )
            break
        parameters = _plain(fault.parameters, f"{path}.parameters", problems)
        if effect is None or moment is None or parameters is None:
            continue
        planned = PlannedFault(
            id=name,
            kind=fault.kind,
            ranks=target.ranks,
            trigger=plain_trigger(fault.trigger),
            parameters=parameters,
            seed=target.seed,
            line=problems.line(path),
            effect=_effect_here(effect, Occurrence(fault, moment, path, on), target, traits.coordinators, problems),
            role=target.role,
        )
        scheduled.append(Scheduled(planned, planned.effect, moment, path, answers_online(scenario, planned, on)))
    return tuple(scheduled)


def _effect_here(
    effect: JobEffect, occurrence: Occurrence, target: Resolved, coordinators: frozenset[str], problems: Problems
) -> JobEffect:
    """Return the effect of the kind on this target, with these parameters, at this moment."""
    effect = settled(effect, occurrence, problems)
    if target.role in coordinators:
        return STRANDING
    # Another process beside the ranks: a fault that no rule refuses touches no rank.
    return effect if target.role is None else NONE


def plain_trigger(trigger: Trigger) -> dict[str, Any]:
    """Return a trigger as plain data: only set keys, durations in seconds, and the default phase filled in."""
    plain: dict[str, Any] = trigger.model_dump(exclude_none=True, exclude={"all", "any"})
    if trigger.step is not None:
        plain["phase"] = trigger.phase or "step.begin"
    for key, parts in (("all", trigger.all), ("any", trigger.any)):
        if parts is not None:
            plain[key] = [plain_trigger(part) for part in parts]
    return plain


def _effect(kind: str, effects: Mapping[str, JobEffect], path: str, problems: Problems) -> JobEffect | None:
    effect = effects.get(kind)
    if effect is None:
        problems.add(path, f"unknown fault kind {kind!r}", text=kind, hint=suggest(kind, effects))
        return None
    if not may_be_planned(effect):
        problems.add(
            path,
            f"fault kind {kind!r} has the effect {effect.name!r}, which is not yet supported by this version",
            text=kind,
            hint=f"supported effects: {', '.join(known.name for known in OF_KINDS)}",
        )
        return None
    return effect


def _plain(parameters: dict[str, Any], path: str, problems: Problems) -> dict[str, Any] | None:
    """Return the parameters if the plan can be written to JSON and read back with them unchanged."""
    try:
        same: dict[str, Any] = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError) as error:
        problems.add(path, f"parameters must be plain data: {error}", text=parameters)
        return None
    if same != parameters:
        problems.add(path, "parameters must be plain data: keys are text, lists are lists", text=parameters)
        return None
    return same
