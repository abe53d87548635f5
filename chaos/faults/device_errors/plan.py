"""The plan for errors that a device reports."""

from __future__ import annotations

from chaos.faults.device_errors.plan_memory import settle_memory
from chaos.faults.device_errors.plan_op_retry import check_op_retry, introduce_op_retry
from chaos.faults.device_errors.plan_raised import check_raised
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.problems import Problems


def check(draft: Draft, problems: Problems) -> None:
    """Note errors whose outcome is not known, and a switch of the operator-level retry that has no effect."""
    check_raised(draft, problems)
    check_op_retry(draft.scenario, problems)


RULES = Rules(order=10, settle=settle_memory, check=check, introduce=introduce_op_retry)
