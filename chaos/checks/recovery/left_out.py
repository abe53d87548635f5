"""Part of check ``recovery``: the phases of a job's restart that nothing shows, and that no budget asks for.

A job of a user's own loads its state, compiles and trains as it likes, and no agent may see into it. Nobody has
promised how long that takes, so a phase without a budget is no condition of a pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checks.recovery.measured import Phase
from chaos.checks.recovery.phases import measure
from chaos.checks.scope import NotChecked
from chaos.evidence.artifacts import Artifacts
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.phases import is_restart


def budget_of(plan: Plan, phase: Phase) -> float | None:
    """Return the budget of a phase, or of the whole."""
    budget = plan.response.budget
    return budget.total if phase.name == "total" else budget.phases.get(phase.name)


def is_left_out(plan: Plan, phase: Phase) -> bool:
    """Return whether the verdict leaves out a phase, or the whole."""
    return phase.nanoseconds is None and budget_of(plan, phase) is None and is_restart(plan)


def phases_left_out(plan: Plan, history: History, artifacts: Artifacts) -> Iterator[NotChecked]:
    """Yield each phase that the verdict leaves out, and why it was not measured."""
    if not is_restart(plan):
        return
    recovery = measure(plan, history, artifacts)
    for phase in (*recovery.phases, *recovery.whole):
        if is_left_out(plan, phase):
            yield NotChecked("recovery", f"the time of {phase.name}, which was not measured", phase.reason)
