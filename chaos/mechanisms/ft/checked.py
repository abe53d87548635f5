"""The jobs in which FT has no effect, refused in the plan."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.mechanisms.ft.plan import NAME
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario


def check(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note why FT has no effect in this job."""
    del faults
    if NAME not in scenario.job.protection:
        return
    if traits.mechanisms is None or NAME not in traits.mechanisms:
        problems.add(
            "job.protection",
            f"{NAME} is the work of torchft's managers and lighthouse, which job kind {scenario.job.kind!r} has not",
            text=NAME,
            hint="take it out, or use the job kind torchft",
        )
