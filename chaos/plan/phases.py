"""The phases of a plan's recovery."""

from __future__ import annotations

from chaos.plan.budgets import AFTER_RESTART
from chaos.plan.model import Plan
from chaos.plan.parts.response import ENDING, PHASES


def phase_names(plan: Plan) -> tuple[str, ...]:
    """Return the phases in order. Where the launch ends without a new start, the recovery ends with the job."""
    assert plan.response.mechanism is not None
    names = PHASES[plan.response.mechanism]
    whole = plan.resume.resumes or plan.response.mechanism not in ENDING
    return names if whole else tuple(name for name in names if name not in AFTER_RESTART)
