"""The parameters that a periodic file has to hold: those of its rank that no other file of the same save holds."""

from __future__ import annotations

from chaos.checks.checkpoint.exported import is_exported
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.frozen import made_anew
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.parameters import is_appended, is_flag, is_of_no_module, is_optimizer_state
from chaos.evidence.checkpoints.save_parts import held_by_group, held_elsewhere
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan


def asked_of(
    plan: Plan, history: History, artifacts: Artifacts, file: OwnedCheckpoint, state: SavedState, recorded: Event
) -> list[str]:
    """Return the parameters of a record that a file has to hold.

    Weights that every start makes anew are none of them. A file without any of them is a file beside a checkpoint, as
    that of a rank's generators: then the files of the replica group count as well, but only if they hold all that is
    asked of the rank.
    """
    anew = made_anew(history, recorded)
    names = [name for name in names_of(recorded) if name not in anew]
    theirs = recorded.data["parameters"]
    elsewhere = held_elsewhere(history, artifacts, file, theirs)
    if state.digests.keys().isdisjoint(names):
        together = elsewhere | held_by_group(plan, history, artifacts, file, theirs)
        elsewhere = together if together.issuperset(names) else elsewhere
    exported = is_exported(file, state, history)
    return [name for name in names if name not in elsewhere and not (exported and is_optimizer_state(name))]


def names_of(recorded: Event) -> list[str]:
    """Return the parameters that a record of a rank's state has, as far as a file can be asked for them."""
    names: dict[str, str] = recorded.data["parameters"]
    return [name for name in names if not (is_flag(name) or is_appended(name) or is_of_no_module(name))]
