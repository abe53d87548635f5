"""Recorded runs of a job that accumulates gradients: several steps come to one update of the optimizer.

A run of tests.unit is made over: ``global_step`` counts updates, there are accumulated gradients in every state and
file, and the SDK, which counts steps that made an update, names the directory of an end-of-life checkpoint by the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.kit.runs.good_run import GROUPS, LAST, GoodRun, Record, State, digests_of, state_after

ACCUMULATED = "accu_grads.layer1.weight"


def accumulated_after(rank: int, step: int, every: int, *, own: bool = False) -> State:
    """The state of a rank after a step. Right after an update nothing is accumulated.

    ``own``: gradients are reduced for an update only, so that each rank has accumulated its own.
    """
    group = next(index for index, ranks in enumerate(GROUPS) if rank in ranks)
    gradients = np.full((2, 3), (step % every) * (step + (10 + rank if own else group)), np.float32)
    return {**state_after(rank, step), "global_step": np.array([step // every], np.int32), ACCUMULATED: gradients}


def accumulating(run: GoodRun, every: int = 2, *, own: bool = False) -> GoodRun:
    """The run with an update once in ``every`` steps, and a plan that says so."""
    steps = {digests_of(state_after(0, step))["global_step"]: step for step in range(LAST + 1)}
    for records in (*run.files.values(), *(run.baseline or {}).values()):
        for record in records:
            if isinstance(parameters := record.get("parameters"), dict):
                step = steps[parameters["global_step"]]
                record["parameters"] = digests_of(accumulated_after(record["rank"], step, every, own=own))
            if record["event"] == "train.begin":
                record["updates"] = record["initial_step"] // every
            if record["event"] == "handler.enter" and "step" in record:
                record["step"] -= record["step"] % every
            if isinstance(path := record.get("path"), str):
                record["path"] = renamed(path, every)
    for rank, saved in run.saved.items():
        step = int(saved.state["global_step"][0])
        saved.state = accumulated_after(rank, step, every, own=own)
        saved.path = renamed(saved.path, every)
    checkpoint: Any = run.plan.checkpoint
    if checkpoint is not None:
        names: Record = {"directory": renamed(checkpoint.directory, every)}
        names["files"] = {rank: renamed(path, every) for rank, path in checkpoint.files.items()}
        run.replan(checkpoint=type(checkpoint)(**{**vars(checkpoint), **names}))
    run.replan(steps_per_update=every)
    return run


def renamed(path: str, every: int) -> str:
    """A path whose directory carries the step of the last update."""
    for step in range(LAST, 0, -1):
        path = path.replace(f"saved_checkpoints-step_{step}/", f"saved_checkpoints-step_{step - step % every}/")
        path = path.replace(f"saved_checkpoints-step_{step}_tmp", f"saved_checkpoints-step_{step - step % every}_tmp")
        if path.endswith(f"saved_checkpoints-step_{step}"):
            return path.replace(f"-step_{step}", f"-step_{step - step % every}")
    return path


def lose_accumulated(parameters: dict[str, str]) -> None:
    """The digests of a state whose accumulated gradients have become zero."""
    parameters[ACCUMULATED] = digests_of({ACCUMULATED: np.zeros((2, 3), np.float32)})[ACCUMULATED]
