"""Switches of MindSpeed-LLM in a job of another kind, which plans nothing of what they do."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.jobs.mindspeed.arguments import Arguments
from chaos.jobs.mindspeed.switches import VARIABLE, switches_of
from chaos.scenario.models.job import Job


def unplanned_switches(job: Job) -> Iterator[str]:
    """Yield, once, that the plan has nothing of the switches that are on, with the kind that plans them."""
    switches = switches_of(Arguments(job.arguments), dict(job.environment).get(VARIABLE))
    spelled = [switch.spelled for switch in switches.by_word.values()]
    if spelled:
        are = "are switches" if len(spelled) > 1 else "is a switch"
        yield (
            f"{', '.join(spelled)} {are} of MindSpeed-LLM, and this plan holds nothing of the recovery: job kind "
            "mindspeed plans what should happen then."
        )
