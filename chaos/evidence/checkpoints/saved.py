"""The end-of-life checkpoints of a run: their files, and the step that they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, OwnerUnknown, owners_of
from chaos.evidence.checkpoints.save_parts import of_other_ranks, other_parts
from chaos.evidence.checkpoints.stored import COUNTER, SCRIPT, one_step, steps_by_name, supported_step
from chaos.evidence.checkpoints.whole import holds, is_of_weights
from chaos.evidence.facts import TRAIN, step_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.saved_state import SavedState

SavedKind = Literal["end-of-life", "periodic"]

Reader = Callable[[OwnedCheckpoint], SavedState]
"""Returns the state in a file, or raises chaos.observe.checkpoints.checkpoint.CheckpointError."""


UNSEEN = "no save of any rank is recorded"
"""The reason to know nothing of the periodic checkpoints: see :func:`sees_saves`."""


def sees_saves(history: History) -> bool:
    """Return whether a rank has recorded a periodic save. The agent follows not every way in which a job can save."""
    return any(history.first(name, kind="periodic") for name in ("checkpoint.begin", "checkpoint.end"))


def end_of_life(history: History, artifacts: Artifacts) -> list[OwnedCheckpoint]:
    """Return the finished end-of-life files whose owner is known, by path.

    MindFormers gives them the name of an ordinary checkpoint; such a file counts when a rank recorded it as
    end-of-life.
    """
    recorded = _recorded(history, artifacts)
    return [
        file
        for file in owners_of(history, artifacts).owned
        if file.kind == "end-of-life" or (file.kind == "either" and file.path in recorded)
    ]


def may_be_end_of_life(history: History, artifacts: Artifacts) -> bool:
    """Return whether a finished file may be an end-of-life one, whoever owns it; MindFormers' names do not tell."""
    owners = owners_of(history, artifacts)
    kinds = {*(file.kind for file in owners.owned), *(file.kind for file in owners.unowned)}
    return not kinds.isdisjoint({"end-of-life", "either"})


def unowned(history: History, artifacts: Artifacts, kind: SavedKind) -> list[OwnerUnknown]:
    """Return the finished files of a kind whose owner cannot be determined."""
    recorded = _recorded(history, artifacts)
    return [
        file
        for file in owners_of(history, artifacts).unowned
        if (file.kind == "end-of-life" or file.path in recorded) == (kind == "end-of-life")
    ]


def outside(history: History, artifacts: Artifacts, kind: SavedKind) -> list[Event]:
    """Return the recorded saves of a kind whose files lie outside the run's directory and cannot be read."""
    saves = owners_of(history, artifacts).outside
    return [event for event in saves if (event.data.get("kind") == "end-of-life") == (kind == "end-of-life")]


def _recorded(history: History, artifacts: Artifacts) -> set[Path | None]:
    return {
        artifacts.locate(str(event.data.get("path")))
        for event in history.select("checkpoint.end", attempt=TRAIN, kind="end-of-life")
    }


def stored_step(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> int | None:
    """Return the step stored inside a file, as :func:`step_in`.

    Raises chaos.observe.checkpoints.checkpoint.CheckpointError when the file is not sound.
    """

    def read(read_file: OwnedCheckpoint) -> SavedState:
        return artifacts.read_checkpoint(read_file.path)

    return step_in(history, artifacts, file, read)


def step_in(history: History, artifacts: Artifacts, file: OwnedCheckpoint, read: Reader) -> int | None:
    """Return the step whose state a file holds: ``step_num``, else the step of the optimizer's ``global_step``.

    Within an accumulation of gradients the rank's record of the save decides, else its digests: the accumulated
    gradients differ in every step. A file with neither number holds the step of the record, where its script's own
    number supports that, or where another file of the same save holds this step. Else the file's content decides: it
    holds the step of the only save after which its rank held just this, if the script's own number supports that too.
    None where nothing decides.
    """
    state, every = read(file), artifacts.steps_per_update
    if not steps_by_name(state.numbers, every):
        supported = supported_step(state.numbers, file.held)
        found = _step_of_parts(history, artifacts, file, read) if supported is None else supported
        return _step_of_content(history, file, state) if found is None else found
    return one_step(state.numbers, every, (file.held, _held_after(history, file, state, every)))


def _step_of_parts(history: History, artifacts: Artifacts, file: OwnedCheckpoint, read: Reader) -> int | None:
    """Return the step that the rank recorded for its save, where a number in another file of the save supports it.

    The other file may be one that another rank has saved beside it.
    """
    for part in (*other_parts(history, artifacts, file), *of_other_ranks(history, artifacts, file)):
        try:
            numbers = read(part).numbers
        except CheckpointError:  # the judge of the file says so
            continue
        step = one_step(numbers, artifacts.steps_per_update, (part.held,))
        step = supported_step(numbers, part.held) if step is None else step
        if step is not None and {step} == file.held:
            return step
    return None


def _step_of_content(history: History, file: OwnedCheckpoint, state: SavedState) -> int | None:
    """Return the step of the saves of the file's rank after which the rank held the file's content, bit for bit.

    None where no step is such a step, or several are, as in a training that changes nothing, and for a file of weights
    only: it says nothing of the optimizer's state.
    """
    if is_of_weights(file):
        return None
    saves = history.select("checkpoint.end", rank=file.rank)
    steps = {step for save in saves if isinstance(step := save.data.get("step"), int)}
    found = {
        step
        for step in steps
        for event in history.select("digest", rank=file.rank, step=step)
        if isinstance(theirs := event.data.get("parameters"), dict) and holds(file, state, theirs)
    }
    step = found.pop() if len(found) == 1 else None
    return step if step is None or SCRIPT not in state.numbers else supported_step(state.numbers, frozenset({step}))


def _held_after(history: History, file: OwnedCheckpoint, state: SavedState, every: int) -> frozenset[int]:
    """Return the steps with the stored number of updates after which the file's rank held the file's content."""
    if every == 1:
        return frozenset()
    digests = (
        event
        for step in steps_by_name(state.numbers, every).get(COUNTER, ())
        for event in history.select("digest", rank=file.rank, step=step)
    )
    return frozenset(
        step_of(event)
        for event in digests
        if isinstance(theirs := event.data.get("parameters"), dict) and holds(file, state, theirs)
    )


def saved_step(history: History, artifacts: Artifacts) -> int | None:
    """Return the one step that all end-of-life files hold. None when there is no file, or they do not agree."""
    steps: set[int | None] = set()
    for file in end_of_life(history, artifacts):
        try:
            steps.add(stored_step(history, artifacts, file))
        except CheckpointError:
            return None
    return steps.pop() if len(steps) == 1 else None
