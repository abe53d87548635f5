"""A run directory with an open history, for own checks and hooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.reader import History, read_history
from chaos.history.writer import HistoryWriter
from chaos.own.program import OwnPlace
from chaos.store.directory import RunDirectory, create_run


@dataclass
class OwnRun:
    """A run of this process, the directory of its scenario, and its history so far."""

    owned: RunDirectory
    directory: Path
    history: HistoryWriter

    @property
    def place(self) -> OwnPlace:
        environment = {"CHAOS_SCENARIO": "mine"}
        return OwnPlace(self.owned.token, self.owned.ledger, SYSTEM_CLOCK, self.directory, environment)

    def read(self) -> History:
        return read_history(self.owned.path / "history")


@pytest.fixture
def own_run(tmp_path: Path) -> Iterator[OwnRun]:
    """A run with its history, and a directory for the scenario."""
    owned = create_run(tmp_path / "reports", "mine")
    directory = tmp_path / "scenario"
    directory.mkdir()
    path = owned.path / "history" / "harness.jsonl"
    with owned.lock, HistoryWriter(path, writer="harness", run=owned.token, clock=SYSTEM_CLOCK) as history:
        yield OwnRun(owned, directory, history)
