"""The plan for values that are changed inside a rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chaos.faults.values.plan_corruption import check_corruption, corruptions, explain_corruptions
from chaos.faults.values.plan_spike import check_spikes, explain_spikes, spike_changes
from chaos.plan.change import Change
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems


def changes(draft: Draft, recoveries: Sequence[Recovery]) -> Iterable[Change]:
    """Yield the values that are computed wrongly because of each fault."""
    return (*corruptions(draft.faults), *spike_changes(draft, recoveries))


def explain(draft: Draft, faults: Sequence[PlannedFault]) -> Iterable[str]:
    """Yield why nothing is rolled back, and the promise for a value that nobody notices."""
    return (*explain_spikes(draft), *explain_corruptions(faults))


def check(draft: Draft, problems: Problems) -> None:
    """Note changes that cannot be made, that cannot be shown, or whose outcome is not known."""
    check_spikes(draft, problems)
    check_corruption(draft, problems)


RULES = Rules(order=20, listed=20, check=check, explain=explain, changes=changes)
