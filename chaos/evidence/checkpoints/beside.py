"""Files beside a checkpoint with the names of its weights and other values: an average of the weights, or a copy of
them in another type.

A script saves them with the checkpoint, which holds all that is needed to go on. They have no optimizer state, and none
of their values was the state of any rank, so they are neither of another step nor a mixture.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import state_at_resume
from chaos.evidence.checkpoints.frozen import made_anew
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, owners_of
from chaos.evidence.checkpoints.parameters import is_appended, is_flag, is_of_no_module, is_optimizer_state, is_weight
from chaos.evidence.checkpoints.save_parts import other_parts
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.checkpoints.stored import COUNTER, STEP
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.saved_state import SavedState


def is_beside(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> bool:
    """Return whether a file has other weights than its rank, and the other files of the same save hold the state."""
    parts = other_parts(history, artifacts, file)
    recorded = _recorded(history, file) if parts else None
    if recorded is None:
        return False
    theirs = recorded.data["parameters"]
    anew = made_anew(history, recorded)
    try:
        state = _state(history, artifacts, file)
        digests = as_held(state, file.rank, theirs).digests
        held = [as_held(_state(history, artifacts, part), part.rank, theirs).digests for part in parts]
    except CheckpointError:  # chaos.checks.checkpoint says so
        return False
    if any(map(is_optimizer_state, digests)) or {STEP, COUNTER} & state.numbers.keys():
        return False
    weights = {name: digests[name] for name in digests if name in theirs and is_weight(name) and name not in anew}
    if not weights or any(pair in weights.items() for pair in _states(history)):
        return False
    asked = [name for name in theirs if not (is_flag(name) or is_appended(name) or is_of_no_module(name))]
    return all(any(part.get(name) == theirs[name] for part in held) for name in asked if name not in anew)


def _recorded(history: History, file: OwnedCheckpoint) -> Event | None:
    """Return the record of the rank's state at the save; None where it is not known."""
    made = file.made
    if made is None or len(file.held) != 1:
        return None
    (step,) = file.held
    last = history.last("digest", attempt=made.attempt, rank=made.rank, pid=made.pid, step=step)
    return last if last is not None and isinstance(last.data.get("parameters"), dict) else None


def _state(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> SavedState:
    """Return the content of a file; of one that was removed since the job was started again, as it was then."""
    removed = file in owners_of(history, artifacts).removed
    return state_at_resume(history, artifacts, file) if removed else artifacts.read_checkpoint(file.path)


def _states(history: History) -> Iterator[tuple[str, str]]:
    """Yield each name with each digest that a rank has recorded for it."""
    for event in (*history.select("initial"), *history.select("digest")):
        parameters = event.data.get("parameters")
        yield from parameters.items() if isinstance(parameters, dict) else ()
