"""A proof is of one content, one place and one run: whatever else it is shown for, it proves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.history.ledger import Ledger, UndoStep
from chaos.history.seal import PROOF, Seal

KEY = bytes(range(32))
SEAL = Seal(KEY, "run-a")


def step(key: str, **arguments: str) -> UndoStep:
    return UndoStep(key, None, "remove-directory", arguments, f"remove {key}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "undo.jsonl"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    """A ledger of three steps; the one in the middle is closed."""
    made = Ledger(path, SEAL)
    for key in "abc":
        made.record(step(key, path=f"/tmp/{key}"))
    made.close("b", "removed")
    return made


def test_what_was_written_with_the_key_is_proved_by_it(ledger: Ledger, path: Path) -> None:
    read = ledger.read()
    assert ([undo_step.id for undo_step in read.open], read.closed) == (["c", "a"], {"b": "removed"})
    assert (read.unproven, read.doubts, read.problems) == ((), (), ())
    assert [undo_step.id for undo_step in Ledger(path).read().open] == ["c", "a"], "who judges it needs no key"


@pytest.mark.parametrize("other", [Seal(bytes(32), "run-a"), Seal(KEY, "run-b")], ids=["other key", "other run"])
def test_another_key_and_another_run_prove_nothing_of_it(ledger: Ledger, path: Path, other: Seal) -> None:
    read = Ledger(path, other).read()
    assert read.open == [] and read.closed == {}
    assert [undo_step.id for undo_step in read.unproven] == ["c", "a"]
    assert len(read.doubts) == 4


def changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b"/tmp/a", b"/etc"), *lines[1:]]


def appended(lines: list[bytes]) -> list[bytes]:
    record = b'{"record":"step","id":"x","fault":null,"action":"end-job","arguments":{},"note":""}\n'
    return [*lines, record]


def copied(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[0].replace(b'"id":"a"', b'"id":"x"')]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def dropped(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def closed_by_a_stranger(lines: list[bytes]) -> list[bytes]:
    return [*lines, b'{"record":"close","id":"a","outcome":"as if"}\n']


def without_proofs(lines: list[bytes]) -> list[bytes]:
    return [json.dumps({**json.loads(line), PROOF: None}).encode() + b"\n" for line in lines]


@pytest.mark.parametrize(
    ("change", "believed", "refused"),
    [
        (changed, ["c"], ["a"]),  # the line behind it has lost its place
        (appended, ["c", "a"], ["x"]),
        (copied, ["c", "a"], ["x"]),
        (swapped, [], ["c", "a"]),
        (dropped, ["a"], ["c"]),
        (closed_by_a_stranger, ["c", "a"], []),
        (without_proofs, [], ["c", "a"]),
    ],
)
def test_no_line_counts_that_was_changed_added_moved_or_has_lost_the_one_before(
    ledger: Ledger,
    path: Path,
    change: Callable[[list[bytes]], list[bytes]],
    believed: list[str],
    refused: list[str],
) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    read = ledger.read()
    assert [undo_step.id for undo_step in read.open] == believed
    assert sorted(undo_step.id for undo_step in read.unproven) == sorted(refused)
    assert read.doubts


@pytest.mark.parametrize("cut", [1, 20, 90])
def test_a_torn_last_line_breaks_no_chain(ledger: Ledger, path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    assert [undo_step.id for undo_step in ledger.read().open] == ["c", "b", "a"]
    ledger.record(step("d"))
    read = ledger.read()
    assert [undo_step.id for undo_step in read.open] == ["d", "c", "b", "a"]
    assert (read.unproven, read.doubts, read.problems) == ((), (), ())


def test_what_is_written_behind_damage_is_proved_in_its_place(ledger: Ledger, path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"garbage\n")
    ledger.record(step("d"))
    read = ledger.read()
    assert [undo_step.id for undo_step in read.open] == ["d", "c", "a"] and len(read.problems) == 1 and not read.doubts


def test_two_writers_at_once_make_one_chain(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def write(number: int) -> None:
        own = Ledger(path, SEAL)  # as each part of a run has its own
        for key in range(10):
            own.record(step(f"{number}-{key}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    read = Ledger(path, SEAL).read()
    assert len(read.steps) == 40 and read.doubts == ()


@pytest.mark.parametrize("proof", [None, 1, "", "0" * 64, "ä", ["x"]])
def test_no_value_in_the_place_of_a_proof_is_one(proof: object) -> None:
    document = SEAL.document({"run": "r"})
    assert SEAL.proves_document(document) and not SEAL.proves_line(document, b"")
    assert not SEAL.proves_document({**document, PROOF: proof})
    assert not SEAL.proves_document({**document, "more": 1})
