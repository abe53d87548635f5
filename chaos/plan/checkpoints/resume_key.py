"""The key of a scenario by which a job is started again from its periodic checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import ExpectResume, Scenario

ARGUMENTS = "job.resume_arguments"
INTERVAL = "job.checkpoint_interval"

_UNLESS = {ARGUMENTS: ", or set job.resume: false in its place", INTERVAL: ", or set job.resume: false"}


def resume_key(scenario: Scenario, losing: Sequence[Scheduled]) -> str:
    """Return the key that asks for the resume: an expectation, a fault of the checkpoints, or the job itself."""
    if isinstance(scenario.expect.resume, ExpectResume):
        return "expect.resume"
    if losing:
        return f"{losing[0].path}.kind"
    return ARGUMENTS if scenario.job.resume_arguments else INTERVAL


def unless(key: str) -> str:
    """Return the end of a hint: how a resume that the job itself asks for is left out."""
    return _UNLESS.get(key, "")
