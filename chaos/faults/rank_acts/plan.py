"""The plan for acts of a rank on itself."""

from __future__ import annotations

from chaos.faults.rank_acts.plan_hangs import check_hangs, check_slowness, settle_hang
from chaos.faults.rank_acts.plan_own_ends import check_own_ends
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.problems import Problems


def check(draft: Draft, problems: Problems) -> None:
    """Note ends and delays for which it is not known who notices them."""
    check_slowness(draft, problems)
    check_own_ends(draft, problems)
    check_hangs(draft, problems)


RULES = Rules(order=40, settle=settle_hang, check=check)
