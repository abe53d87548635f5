"""The content of a checkpoint when the job was started again: the job may have saved the same name anew since."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import REMEMBERED, OwnedCheckpoint
from chaos.evidence.checkpoints.saved import step_in
from chaos.evidence.facts import RESUME
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.layout import CheckpointFile
from chaos.observe.checkpoints.saved_state import SavedState

DAMAGE_MET = "checkpoint.damage_met"
"""The harness's record, made before the resume, of what lies in place of a file that a fault has damaged.

``content`` is its digest, or ``absent``.
"""

_STATE = TypeAdapter(SavedState)


def state_at_resume(history: History, artifacts: Artifacts, file: CheckpointFile) -> SavedState:
    """Return the state by the harness's record, else by the file as it is now.

    Of a damaged file it is the state as it was saved: a named file is put back when the run is torn down.

    Raises chaos.observe.checkpoints.checkpoint.CheckpointError when the file was not sound, or the record is not.
    """
    remembered = history.last(REMEMBERED, attempt=RESUME, path=artifacts.relative(file.path))
    if remembered is None:
        if file.epoch is None and any(
            artifacts.locate(str(event.data.get("path"))) == file.path
            for event in history.select("checkpoint.begin", attempt=RESUME)
        ):
            raise CheckpointError(file.path, "it was saved anew, and its content at the resume is unknown")
        return artifacts.read_checkpoint(file.path)
    if "problem" in remembered.data:
        raise CheckpointError(file.path, str(remembered.data["problem"]))
    try:
        return artifacts.numbered(_STATE.validate_python(remembered.data.get("state")))
    except ValidationError as error:
        problem = f"its content at the resume is not readable ({remembered.source}): {error.error_count()} problems"
        raise CheckpointError(file.path, problem) from error


def step_at_resume(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> int | None:
    """Return the step that was stored in it, as chaos.evidence.checkpoints.saved.stored_step."""
    return step_in(history, artifacts, file, lambda part: state_at_resume(history, artifacts, part))
