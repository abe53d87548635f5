"""The plan for signals: SIGTERM with a handler, processes beside the ranks that a signal ends, and whole nodes."""

from __future__ import annotations

from chaos.faults.signals.plan_beside import check_beside, explain_beside
from chaos.faults.signals.plan_node import check_node_kill
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Occurrence, Rules
from chaos.plan.job_effect import DEATH, NONE, JobEffect
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS, REJOINING, switched_on
from chaos.plan.schedule import Scheduled

SUSPEND, TERMINATE = "suspend", "terminate"


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
    _check_continued(draft, problems)


def _check_continued(draft: Draft, problems: Problems) -> None:
    """Note a stopped rank that is continued while the job goes on, where no mechanism lets ranks come back."""
    back = [name for name in switched_on(draft.scenario.job.protection) if name in REJOINING]
    for fault in draft.faults:
        if fault.fault.kind == SUSPEND and "seconds" in fault.fault.parameters and not back:
            problems.add(
                f"{fault.path}.parameters.seconds",
                f"fault {fault.fault.id!r} continues ranks that count as lost: only {REJOINING} lets such ranks come "
                "back, and what they do otherwise is not yet planned by this version",
                text=fault.fault.parameters["seconds"],
                hint="leave seconds out: it lasts until the launch has ended; a stop of up to 3 s is the kind freeze",
            )


RULES = Rules(order=30, listed=40, settle=settle, check=check, explain_fault=explain_fault, explain=explain_beside)
