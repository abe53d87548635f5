"""The undo ledger, read and undone. Documented: damage is a problem, and a step that cannot be undone stays open.

No argument of a ledger may lead out of the run: the files beside it are the same after every input.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_open_steps
from chaos.history.ledger import Ledger
from tests.fuzz.mutate import mutate_json_lines
from tests.fuzz.target import Target

_TOKEN = "fuzz-20260101-000000-abcd-0123456789abcdef"
_ROOM = b"/ROOM"
"""Stands in the seeds for the directory that the input lies in."""


class _Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0

    def mono(self) -> int:
        return self.now

    def wall(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Records of a ledger."""
    return mutate_json_lines(random, corpus)


def check(content: bytes, folder: Path) -> None:
    """Undo what is open, with the real actions."""
    outside = folder / "outside"
    (outside / "empty").mkdir(parents=True, exist_ok=True)
    (outside / "file").write_text("kept")
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "undo.jsonl").write_bytes(content.replace(_ROOM, str(folder).encode()))
    ledger = Ledger(folder / "run" / "undo.jsonl")
    read = ledger.read()
    undone = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext(_TOKEN, _Clock()))
    assert len(undone) == len(read.open)
    left = ledger.read()
    assert {step.id for step in left.open} == {outcome.step.id for outcome in undone if not outcome.ok}
    assert (outside / "empty").is_dir() and (outside / "file").read_text() == "kept"


TARGET = Target("ledger", mutate, check)
