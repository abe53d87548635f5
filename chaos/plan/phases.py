"""The phases of a plan's recovery."""

from __future__ import annotations

from chaos.plan.model import Plan
from chaos.plan.parts.response import PHASES, phases_of

RESTARTED = "restart"
"""The word for a recovery by nothing but a new start of the job, in place of a mechanism's name."""


def phase_names(plan: Plan) -> tuple[str, ...]:
    """Return the phases in order. Where the launch ends without a new start, the recovery ends with the job."""
    return phases_of(plan.response.mechanism, resumes=plan.resume.resumes)


def is_restart(plan: Plan) -> bool:
    """Return whether the planned recovery is a new start of a job that ends because no mechanism acts."""
    return plan.response.mechanism not in PHASES and bool(phase_names(plan))
