"""The share of a fault family in the plan, asked by registry: the engine names no family and no kind.

A family names its rules by where they are (``Family.rules``). Every family is asked about a whole scenario, whether one
of its kinds is in it or not: a rule may be about an effect that kinds of other families have too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from chaos.base.registry import RegistryError, registry
from chaos.plan.checkpoints.saved import SavedRules
from chaos.plan.job_effect import JobEffect, as_effect, is_known
from chaos.plan.points import Moment
from chaos.plan.problems import Problems
from chaos.scenario.models.fault import Fault
from chaos.scenario.models.terms import Mechanism

if TYPE_CHECKING:
    from chaos.plan.change import Change
    from chaos.plan.draft import Draft
    from chaos.plan.parts.fault import PlannedFault
    from chaos.plan.parts.response import Recovery
    from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Occurrence:
    """One fault of a scenario before its effect is settled.

    ``path`` is where it stands in the scenario, ``on`` are the mechanisms that can act on it.
    """

    fault: Fault
    moment: Moment
    path: str
    on: Sequence[Mechanism]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one family. They look at the scenario and never at a run, and import no code that acts.

    Args:
        order: its place in the order in which families are asked.
        listed: its place among the reasons at the end of a plan.
        settle: the effect of a fault, given its kind's: by its parameters, its moment, the ranks' hardware and
            software.
        check: notes faults that cannot be made, and faults after which the fate of the job is not known.
        introduce: reasons about the job and all its faults, placed before the reasons for the targets.
        explain_fault: a reason about one fault, placed beside the reason for its target.
        explain: the reasons at the end of a plan; the planned faults say which changes are reverted.
        changes: faults that change computed values, each with how far the run can be compared because of it.
        saved: how its faults hit periodic checkpoints.
        waits: seconds by which the job is started again later because a fault lasts.
    """

    order: int
    listed: int = 0
    settle: Callable[[JobEffect, Occurrence, Problems], JobEffect] | None = None
    check: Callable[[Draft, Problems], None] | None = None
    introduce: Callable[[Draft], Iterable[str]] | None = None
    explain_fault: Callable[[Scheduled], str | None] | None = None
    explain: Callable[[Draft, Sequence[PlannedFault]], Iterable[str]] | None = None
    changes: Callable[[Draft, Sequence[Recovery]], Iterable[Change]] | None = None
    saved: SavedRules | None = None
    waits: Callable[[Draft], float] | None = None


@cache
def in_order() -> tuple[Rules, ...]:
    """Return the rules of every registered family, in the order in which the families are asked.

    Raises RegistryError where a family's rules cannot be imported, or are no rules: faults that they refuse would be
    planned.
    """
    return tuple(sorted(map(_loaded, registry("rules").whole_names()), key=lambda rules: rules.order))


def _loaded(name: str) -> Rules:
    rules = registry("rules").load(name)
    if not isinstance(rules, Rules):
        raise RegistryError(f"what a family names as its plan rules, {name}, is no chaos.plan.family_rules.Rules")
    return rules


def settled(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """Return the effect of a fault in this scenario, given its kind's effect.

    Raises RegistryError for an effect that a stored plan could not be read with.
    """
    for rules in in_order():
        if rules.settle is not None:
            effect = as_effect(rules.settle(effect, occurrence, problems))
            if not is_known(effect):
                raise RegistryError(f"plan rules of a family give the effect {effect.name!r}, which no family lists")
    return effect


def check_families(draft: Draft, problems: Problems) -> None:
    """Let every family note its problems."""
    for rules in in_order():
        if rules.check is not None:
            rules.check(draft, problems)


def changes_of_families(draft: Draft, recoveries: Sequence[Recovery]) -> tuple[Change, ...]:
    """Return the faults that change computed values, family by family."""
    asked = (rules.changes for rules in in_order() if rules.changes is not None)
    return tuple(change for changes in asked for change in changes(draft, recoveries))


def saved_rules() -> tuple[SavedRules, ...]:
    """Return the families' rules about faults that hit periodic checkpoints."""
    return tuple(rules.saved for rules in in_order() if rules.saved is not None)


def longest_wait(draft: Draft) -> float:
    """Return the seconds by which the job is started again later because a fault lasts."""
    return max((rules.waits(draft) for rules in in_order() if rules.waits is not None), default=0.0)


def reasons_of_job(draft: Draft) -> tuple[str, ...]:
    """Return the families' reasons about the job and all its faults, which precede the reasons for the targets."""
    return tuple(reason for rules in in_order() if rules.introduce is not None for reason in rules.introduce(draft))


def reasons_of_fault(fault: Scheduled) -> tuple[str, ...]:
    """Return the families' reasons about one fault."""
    reasons = (rules.explain_fault(fault) for rules in in_order() if rules.explain_fault is not None)
    return tuple(reason for reason in reasons if reason is not None)


def reasons_of_families(draft: Draft, faults: Sequence[PlannedFault]) -> tuple[str, ...]:
    """Return the reasons at the end of a plan, each without its full stop."""
    listed = sorted(in_order(), key=lambda rules: rules.listed)
    return tuple(reason for rules in listed if rules.explain is not None for reason in rules.explain(draft, faults))
