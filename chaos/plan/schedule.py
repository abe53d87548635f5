"""The fault schedule: ids, targets resolved to ranks, and the moment of every fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.plan.family_rules import Occurrence, settled
from chaos.plan.parts.fault import STORAGE, PlannedFault
from chaos.plan.points import Moment
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import (
    COMMUNICATION,
    IN_UPDATE,
    LOW_LEVEL,
    MEMORY,
    ONLINE,
    TIMED,
    UNKNOWN_ERROR,
    answers_online,
    switched_on,
)
from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import Layout
from chaos.plan.topology.targets import Resolved, resolve
from chaos.plan.triggers import read_moments
from chaos.scenario.errors import suggest
from chaos.scenario.models.fault import Trigger
from chaos.scenario.models.ids import fault_ids
from chaos.scenario.models.scenario import MAX_RANKS, Scenario
from chaos.scenario.models.terms import Mechanism

SUSPENSION = "suspension"
"""Effect of a fault whose ranks fall silent while their processes live."""

LETHAL = ("death", SUSPENSION)
"""Effects after which a rank answers no more: it is gone, or stopped and taken for gone when its heartbeat is lost."""

RAISED = (MEMORY, LOW_LEVEL, IN_UPDATE, COMMUNICATION, UNKNOWN_ERROR)
"""Effects of a fault that is raised as an error in its ranks, whose processes live on."""

HANG = "hang"
"""Effect of a fault after which a rank's process lives, and its training does not go on."""

ABNORMAL = "abnormal result"
"""Effect of a fault whose ranks compute what they should not; nothing else happens to them."""

SILENT = "silent corruption"
"""Effect of a fault after which ranks compute with wrong values, and nothing says so."""

TERMINATION = "termination"
"""Effect of a signal that asks a process to end: none where the SDK's processor has a handler for it, else death."""

PAUSE = "pause"
"""Effect of a fault that holds all ranks back for a while, as a cluster's manager orders it."""

LOST_FILES = "lost files"
"""Effect of a fault that takes away what its ranks have saved."""

DAMAGED = "damaged checkpoint"
"""Effect of a fault that leaves the newest file that its ranks have saved, with another content."""

RENAMED = "renamed checkpoint"
"""Effect of a fault that gives that file the name of another step."""

RECORD = "damaged record"
"""Effect of a fault that leaves the checkpoints and spoils the record that says which of them is the last."""

EFFECTS = (
    *(*LETHAL, HANG, MEMORY, TIMED, COMMUNICATION, UNKNOWN_ERROR, TERMINATION, *STORAGE),
    *(PAUSE, LOST_FILES, DAMAGED, RENAMED, RECORD, ABNORMAL, SILENT, "none"),
)
"""Effects of fault kinds that this version can plan for."""


@dataclass(frozen=True)
class Scheduled:
    """A planned fault with what the plan derives from it: its effect, its moment, its path in the scenario.

    ``repaired_by`` is the mechanism that answers an error that was raised, or an abnormal result, while the processes
    live on; None where there is none.
    """

    fault: PlannedFault
    effect: str
    moment: Moment
    path: str
    repaired_by: Mechanism | None = None

    @property
    def handler(self) -> str | None:
        """The SDK's handler at whose entry it is made, inside a recovery; None for a fault that comes by itself."""
        parts = [self.fault.trigger, *self.fault.trigger.get("all", ())]
        return next((part["handler"] for part in parts if "handler" in part), None)

    @property
    def raised(self) -> bool:
        """Whether it is an error that is raised in its ranks."""
        return self.effect in RAISED

    @property
    def silences(self) -> bool:
        """Whether the processes of its ranks end or stop; one that reports an error still runs its other threads."""
        return self.effect in LETHAL

    @property
    def lethal(self) -> bool:
        """Whether its ranks are lost to the job: those of an error that nothing repairs are, and those that hang."""
        return self.silences or self.effect == HANG or (self.raised and self.repaired_by is None)


MAX_HIT = 2 * MAX_RANKS
"""Most ranks that the faults of one scenario hit together, each counted as often as it is hit."""


def plan_faults(
    scenario: Scenario,
    layout: Layout,
    groups: Sequence[tuple[int, ...]],
    *,
    effects: Mapping[str, str],
    observable: frozenset[str],
    draw_seed: Callable[[], int],
    problems: Problems,
) -> tuple[Scheduled, ...]:
    """Resolve every fault of the scenario. Faults with a problem are noted and left out.

    Args:
        scenario: the scenario.
        layout: its checked layout.
        groups: its replica groups.
        effects: effect by fault kind; a kind that is missing is unknown.
        observable: phases that the job can report.
        draw_seed: gives a fresh seed for a random target without one.
        problems: takes what is wrong.
    """
    ids = fault_ids(scenario.faults)
    moments = read_moments(scenario, ids, observable, problems)
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
            effect=_effect_here(effect, Occurrence(fault, moment, path, on), target, problems),
            role=target.role,
        )
        scheduled.append(Scheduled(planned, planned.effect, moment, path, answers_online(scenario, planned, on)))
    return tuple(scheduled)


def _effect_here(effect: str, occurrence: Occurrence, target: Resolved, problems: Problems) -> str:
    """The effect of the kind on this target, with these parameters, at this moment."""
    effect = settled(effect, occurrence, problems)
    # A process beside the ranks: what no rule refuses touches no rank.
    return effect if target.role is None else "none"


def plain_trigger(trigger: Trigger) -> dict[str, Any]:
    """A trigger as plain data: only what is set, durations in seconds, and the default phase filled in."""
    plain: dict[str, Any] = trigger.model_dump(exclude_none=True, exclude={"all", "any"})
    if trigger.step is not None:
        plain["phase"] = trigger.phase or "step.begin"
    for key, parts in (("all", trigger.all), ("any", trigger.any)):
        if parts is not None:
            plain[key] = [plain_trigger(part) for part in parts]
    return plain


def _effect(kind: str, effects: Mapping[str, str], path: str, problems: Problems) -> str | None:
    effect = effects.get(kind)
    if effect is None:
        problems.add(path, f"unknown fault kind {kind!r}", text=kind, hint=suggest(kind, effects))
        return None
    if effect not in EFFECTS:
        problems.add(
            path,
            f"fault kind {kind!r} has the effect {effect!r}, which is not yet supported by this version",
            text=kind,
            hint=f"supported effects: {', '.join(EFFECTS)}",
        )
        return None
    return effect


def _plain(parameters: dict[str, Any], path: str, problems: Problems) -> dict[str, Any] | None:
    """The parameters if the plan can be written to JSON and read back with them unchanged."""
    try:
        same: dict[str, Any] = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError) as error:
        problems.add(path, f"parameters must be plain data: {error}", text=parameters)
        return None
    if same != parameters:
        problems.add(path, "parameters must be plain data: keys are text, lists are lists", text=parameters)
        return None
    return same
