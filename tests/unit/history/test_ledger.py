"""The ledger's promises: a step is on disk before its fault, and is open until it was undone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.history.ledger import Ledger, LedgerError, UndoStep


def step(key: str) -> UndoStep:
    return UndoStep(key, "kill-1", "resume-process", {"pid": 5}, "continue rank 2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "undo.jsonl"


def test_open_steps_are_undone_in_reverse_order(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.open_steps() == []
    for key in "abc":
        ledger.record(step(key))
    ledger.close("b", "continued")
    assert Ledger(path).open_steps() == [step("c"), step("a")]
    assert Ledger(path).read().closed == {"b": "continued"}


def test_a_step_is_synced_with_its_directory_before_record_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bytes]] = []

    def fsync(descriptor: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    Ledger(path).record(step("a"))
    content = path.read_bytes()
    assert synced == [(str(path), content), (str(path.parent), content)]
    Ledger(path).close("a", "done")
    assert [name for name, _ in synced[2:]] == [str(path)]


def test_an_id_is_used_once_and_only_known_steps_are_closed(path: Path) -> None:
    ledger = Ledger(path)
    ledger.record(step("a"))
    with pytest.raises(LedgerError, match="recorded before"):
        ledger.record(step("a"))
    with pytest.raises(LedgerError, match="no undo step b"):
        ledger.close("b", "done")


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_torn_step_was_never_acted_on_and_a_torn_close_leaves_its_step_open(path: Path, cut: int) -> None:
    ledger = Ledger(path)
    ledger.record(step("a"))
    whole = path.read_bytes()
    ledger.close("a", "a long outcome, so that there is enough to cut")
    path.write_bytes(path.read_bytes()[:-cut])
    assert ledger.open_steps() == [step("a")]
    assert ledger.read().problems == ()
    ledger.record(step("b"))
    assert path.read_bytes().startswith(whole + b'{"record":"step","id":"b"'), "the torn line is gone"
    assert ledger.open_steps() == [step("b"), step("a")]


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage",
        b"[]",
        b'{"record":"step","id":1}',
        b'{"record":"close","id":"z","outcome":"?"}',
        b"x" * (2 << 20),
        json.dumps({"record": "step", "id": "a", "fault": None, "action": "x", "arguments": {}, "note": ""}).encode(),
    ],
)
def test_a_damaged_line_is_a_problem_since_it_may_have_held_a_step(path: Path, bad: bytes) -> None:
    Ledger(path).record(step("a"))
    path.write_bytes(path.read_bytes() + bad + b"\n")
    Ledger(path).record(step("b"))
    content = Ledger(path).read()
    assert content.open == [step("b"), step("a")]
    assert len(content.problems) == 1
    assert content.problems[0].startswith("undo.jsonl:2: not an undo record")


def test_a_ledger_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "missing" / "undo.jsonl").record(step("a"))
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "link").record(step("a"))


def test_a_short_write_is_an_error_and_leaves_no_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    with pytest.raises(LedgerError, match="disk full"):
        Ledger(path).record(step("a"))
    assert Ledger(path).open_steps() == []


@given(content=st.binary(max_size=200))
def test_no_content_makes_reading_raise(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    read = Ledger(path).read()
    assert len(read.problems) <= content.count(b"\n")
    assert read.open == []
