"""A checkpoint that a process saves before its first step, as a loop does that looks for a save first.

It holds the state with which the process begins to train. Where that is the job's beginning, an optimizer of PyTorch
has no state yet, and no number of updates.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.evidence.checkpoints.owner import OwnedCheckpoint, before
from chaos.history.event import Event
from chaos.history.reader import History


def begun_with(history: History, file: OwnedCheckpoint) -> Event | None:
    """Return the state with which the file's process began to train, with its step; None if it was not saved before.

    What is loaded behind the save is another state, and so is one whose record names another step.
    """
    made = file.made
    if made is None or before(made, "step.begin", history) is not None:
        return None
    initial = history.first("initial", attempt=made.attempt, rank=made.rank, pid=made.pid)
    begin = history.first("train.begin", attempt=made.attempt, rank=made.rank, pid=made.pid)
    step = None if begin is None else begin.data.get("initial_step")
    if initial is None or not isinstance(step, int) or not isinstance(initial.data.get("parameters"), dict):
        return None
    if made.data.get("step") not in (None, step):
        return None
    loads = history.select("load.begin", attempt=made.attempt, rank=made.rank, pid=made.pid)
    if any(made.seq < load.seq < initial.seq for load in loads):
        return None
    return replace(initial, data={**initial.data, "step": step})
