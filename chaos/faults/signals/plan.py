"""The plan for signals: SIGTERM with a handler, processes beside the ranks that a signal ends, and whole nodes."""

from __future__ import annotations

from chaos.faults.signals.plan_beside import check_beside, explain_beside
from chaos.faults.signals.plan_node import check_node_kill
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Occurrence, Rules
from chaos.plan.job_effect import DEATH, NONE, JobEffect
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS
from chaos.plan.schedule import Scheduled

TERMINATE = "terminate"


def settle(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """Return death for a termination, and no effect where an SDK processor is in the ranks: it has a handler."""
    del problems
    if not effect.asks_to_end:
        return effect
    return NONE if any(mechanism in NEEDS["MindIO"] for mechanism in occurrence.on) else DEATH


def explain_fault(fault: Scheduled) -> str | None:
    """Return why a rank trains on after SIGTERM."""
    if fault.fault.kind != TERMINATE or fault.lethal:
        return None
    return (
        f"fault {fault.fault.id}: the SDK's processor has installed a handler for SIGTERM that does nothing "
        "(MindIO TFT, tft_init_processor), so the rank trains on"
    )


def check(draft: Draft, problems: Problems) -> None:
    """Note faults of processes beside the ranks that cannot be made, or of which nothing is known afterwards."""
    check_beside(draft, problems)
    check_node_kill(draft, problems)


RULES = Rules(order=30, listed=40, settle=settle, check=check, explain_fault=explain_fault, explain=explain_beside)
