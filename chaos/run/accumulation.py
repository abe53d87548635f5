"""The number of steps in one update of the optimizer, where the scenario does not say: the fault-free run shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.checks.history.updates import observe
from chaos.evidence.facts import TRAIN
from chaos.history.reader import read_history
from chaos.plan.model import Plan
from chaos.scenario.load import Cell


def completed(cell: Cell, run_dir: Path) -> Cell | None:
    """Return the cell with ``job.steps_per_update`` filled in from the run's baseline.

    None where the scenario says the number, where every step makes an update, and where the baseline does not show it.
    """
    job = cell.scenario.job
    observed = None if job.steps_per_update is not None else observe(read_history(run_dir / "baseline" / "history"))
    every = None if observed is None else observed.steps_per_update
    if every is None or every == 1:
        return None
    job = job.model_copy(update={"steps_per_update": every})
    return replace(cell, scenario=cell.scenario.model_copy(update={"job": job}))


def is_misnumbered(run_dir: Path) -> bool:
    """Return whether the baseline began to train more than once in a process, so that its updates are misnumbered."""
    begins = read_history(run_dir / "baseline" / "history").select("train.begin", attempt=TRAIN)
    return len(begins) > len({(event.rank, event.pid) for event in begins})


def first_drawn(cell: Cell, plan: Plan) -> int | None:
    """Return the first seed that was drawn for the plan, with which the same ranks are drawn again."""
    seeds = {fault.id: fault.seed for fault in plan.faults}
    for fault, planned in zip(cell.scenario.faults, plan.faults, strict=True):
        if fault.target.random is not None and fault.target.random.seed is None:
            return seeds[planned.id]
    return None
