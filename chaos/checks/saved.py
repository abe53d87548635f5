"""The end-of-life checkpoints of a run: which files they are, and the step that they hold."""

from __future__ import annotations

from chaos.checks.artifacts import Artifacts
from chaos.checks.facts import TRAIN
from chaos.history.reader import History
from chaos.observe.checkpoint import CheckpointError
from chaos.observe.layout import FoundCheckpoint


def end_of_life(history: History, artifacts: Artifacts) -> list[FoundCheckpoint]:
    """Finished end-of-life files, by path.

    MindFormers gives them the name of an ordinary checkpoint; such a file counts when a rank recorded it as one.
    """
    recorded = {
        artifacts.locate(str(one.data.get("path")))
        for one in history.select("checkpoint.end", attempt=TRAIN, kind="end-of-life")
    }
    return [
        file
        for file in artifacts.checkpoints
        if not file.temporary and (file.kind == "end-of-life" or (file.kind == "either" and file.path in recorded))
    ]


def stored_step(artifacts: Artifacts, file: FoundCheckpoint) -> int | None:
    """The step stored inside a file: ``step_num``, else the optimizer's ``global_step``. None if it has neither.

    Raises chaos.observe.checkpoint.CheckpointError when the file is not sound.
    """
    numbers = artifacts.read_checkpoint(file.path).numbers
    return numbers.get("step_num", numbers.get("global_step"))


def saved_step(history: History, artifacts: Artifacts) -> int | None:
    """The one step that all end-of-life files hold. None when there is no file, or they do not agree."""
    steps: set[int | None] = set()
    for file in end_of_life(history, artifacts):
        try:
            steps.add(stored_step(artifacts, file))
        except CheckpointError:
            return None
    return steps.pop() if len(steps) == 1 else None
