"""The phases that a plan's recovery has."""

from __future__ import annotations

from chaos.plan.budgets import AFTER_RESTART
from chaos.plan.model import Plan
from chaos.plan.parts.response import ENDING, PHASES


def phase_names(plan: Plan) -> tuple[str, ...]:
    """In order. Where the launch ends, and the job is not started again, the recovery ends with the job."""
    assert plan.response.mechanism is not None
    names = PHASES[plan.response.mechanism]
    whole = plan.resume.resumes or plan.response.mechanism not in ENDING
    return names if whole else tuple(name for name in names if name not in AFTER_RESTART)
