"""Refuses contradictions of a job that accumulates gradients: no update at all, or a fault at a missing update."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario


def check_accumulation(scenario: Scenario, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note everything that ``job.steps_per_update`` rules out."""
    every, steps = scenario.job.steps_per_update or 1, scenario.job.steps
    if every > steps:
        problems.add(
            "job.steps_per_update",
            f"the optimizer would make no update: job.steps is {steps}, and job.steps_per_update {every}",
            text=str(every),
            hint="train more steps, or write how many steps of the training loop come to one update",
        )
    for fault in faults:
        step, phase = fault.fault.trigger.get("step"), fault.fault.trigger.get("phase")
        if phase == "optimizer.update" and isinstance(step, int) and step % every:
            later = step - step % every + every
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} is never reached: step {step} makes no update, there is one every "
                f"{every} steps (job.steps_per_update)",
                text=str(step),
                hint=f"use step {later}" if later <= steps else f"use step {later - every}",
            )
