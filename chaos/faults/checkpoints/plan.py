"""The plan for faults of checkpoints that were saved."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.checkpoints.plan_damage import check_damage, damaging, spoilt
from chaos.faults.checkpoints.plan_lost import check_lost, losing, lost_ranks
from chaos.faults.checkpoints.plan_records import check_records, of_records, recorded
from chaos.plan.checkpoints.saved import Damage, SavedRules
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.problems import Problems
from chaos.plan.recovery.outcome import Outcome
from chaos.plan.schedule import Scheduled


def all_losing(draft: Draft) -> list[Scheduled]:
    """Return the faults that take away or damage saved checkpoints."""
    return [*losing(draft.faults), *damaging(draft.faults), *of_records(draft.faults)]


def check(draft: Draft, outcome: Outcome, problems: Problems) -> None:
    """Note the faults that cannot be planned."""
    check_lost(draft, problems)
    check_damage(draft, outcome, problems)
    check_records(draft, problems)


def damage(draft: Draft, last: Mapping[int, int], interval: int, problems: Problems) -> Damage:
    """Return the damage of the faults to the saved checkpoints."""
    lost_by_rank = lost_ranks(draft, len(last), problems)
    damaged = spoilt(draft, last, interval, problems)
    records = recorded(draft, last, interval, problems)
    renamed = frozenset(rank for fault in draft.faults if fault.effect.damages == "name" for rank in fault.fault.ranks)
    return Damage(lost_by_rank, damaged, renamed, records.newest, records.why)


RULES = Rules(order=70, saved=SavedRules(all_losing, check, damage))
