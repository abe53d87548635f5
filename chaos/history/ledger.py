"""The undo ledger: the steps that undo the faults, each on disk before its fault is made."""

from __future__ import annotations

import fcntl
import os
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chaos.history.jsonl import MAX_LINE, UnreadableFile, decode, encode, read_lines
from chaos.history.seal import Seal

_BLOCK = 1 << 16
_MAX_PROBLEMS = 100
"""Damaged lines that are reported one by one. All lines are read: after the damage a step, or its close, may follow."""

MAX_BYTES = 16 << 20
"""Bytes of a ledger that are read. The ledger of a run with a thousand faults has less than one million."""


class LedgerError(RuntimeError):
    """The ledger cannot be written or read. No fault may be made without its undo step on disk."""


@dataclass(frozen=True)
class UndoStep:
    """One thing to put back. ``action`` names an undo action, ``arguments`` (JSON) its objects.

    ``id`` is unique in its ledger. ``fault`` is the fault that the step belongs to, None for the run's own steps (the
    job, its private directory). ``note`` describes the undoing in words.
    """

    id: str
    fault: str | None
    action: str
    arguments: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class LedgerContent:
    """The content of a ledger. ``closed`` maps the id of a closed step to its outcome.

    Where the reader has the run's seal, ``steps`` and ``closed`` hold only the proved lines; ``unproven`` are the open
    steps that anybody may have written, and ``doubts`` the lines without a proof, in words.
    """

    steps: tuple[UndoStep, ...]
    closed: dict[str, str]
    problems: tuple[str, ...]
    unproven: tuple[UndoStep, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def open(self) -> list[UndoStep]:
        """The recorded steps that are not closed, the latest first: the order in which they are undone."""
        return [step for step in reversed(self.steps) if step.id not in self.closed]


class Ledger:
    """The ledger in one file. Writers take turns by a lock on the file, so each line is proved after the one before it.

    A torn last line is passed over: a step is made durable before its fault is made, so a torn step was never acted
    on, and a torn close leaves a step open whose undo can be done again.
    """

    def __init__(self, path: Path, seal: Seal | None = None) -> None:
        """Open the ledger; ``path`` need not exist: the first ``record`` creates it.

        With the run's ``seal`` each line gets a proof, and only lines with a proof count. Without a seal the ledger is
        taken as it is, for callers that act on nothing in it.
        """
        self._path = path
        self._seal = seal
        self._lock = threading.Lock()

    def record(self, step: UndoStep) -> UndoStep:
        """Make ``step`` durable: it is on disk (fsync) when this returns, and only then may its fault be made.

        Raises LedgerError if it could not be written or its id was used before.
        """
        with self._lock:
            if any(step.id == known.id for known in self.read().steps):
                raise LedgerError(f"{self._path}: undo step {step.id} was recorded before")
            self._append({"record": "step", **asdict(step)})
        return step

    def close(self, step_id: str, outcome: str) -> None:
        """Record that the step was undone, or needs no undoing. Raises LedgerError for an unknown step."""
        with self._lock:
            if all(step_id != known.id for known in self.read().steps):
                raise LedgerError(f"{self._path}: there is no undo step {step_id} to close")
            self._append({"record": "close", "id": step_id, "outcome": outcome})

    def open_steps(self) -> list[UndoStep]:
        """Return the steps still to be undone, the latest first."""
        return self.read().open

    def read(self) -> LedgerContent:
        """Read the whole ledger. A missing file is an empty ledger. Damaged lines are problems, never exceptions."""
        proven, unproven = _Taken(), _Taken()
        problems: list[str] = []
        doubts: list[str] = []
        damaged = size = 0
        before = b""
        try:
            for line in read_lines(self._path):
                size += MAX_LINE if line.text is None else len(line.text)
                if size > MAX_BYTES:
                    problems.append(
                        f"{self._path.name}: is larger than {MAX_BYTES:,} bytes, the rest was not looked at"
                    )
                    break
                if line.torn:
                    continue
                try:
                    if line.text is None:
                        raise ValueError("the line is too long")
                    record = decode(line.text)
                    if self._seal is None or self._seal.proves_line(record, before):
                        (unproven if unproven.holds(record) else proven).take(record)
                    else:
                        doubts.append(f"{self._path.name}:{line.number}: has no proof of this user's key in its place")
                        unproven.take(record, strict=False)
                except ValueError as error:
                    damaged += 1
                    if damaged <= _MAX_PROBLEMS:
                        problems.append(f"{self._path.name}:{line.number}: not an undo record: {error}")
                before = line.text or b""
        except UnreadableFile as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                problems.append(str(error))
        except OSError as error:
            problems.append(f"{self._path.name}: cannot be read to its end: {error.strerror}")
        if damaged > _MAX_PROBLEMS:
            problems.append(f"{self._path.name}: {damaged - _MAX_PROBLEMS} more lines are no undo records")
        if len(doubts) > _MAX_PROBLEMS:
            doubts[_MAX_PROBLEMS:] = [f"{self._path.name}: {len(doubts) - _MAX_PROBLEMS} more lines have no proof"]
        steps = tuple(proven.steps.values())
        return LedgerContent(steps, proven.closed, tuple(problems), unproven.open, tuple(doubts))

    def _append(self, record: dict[str, Any]) -> None:
        try:
            created = not self._path.exists()
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o660)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _drop_torn_line(descriptor)
                line = encode(record if self._seal is None else self._seal.line(record, _last_line(self._path)))
                if os.write(descriptor, line) != len(line):
                    raise LedgerError(f"{self._path}: the line was not written whole; is the disk full?")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if created:
                _sync_directory(self._path.parent)
        except OSError as error:
            raise LedgerError(f"{self._path}: cannot be written: {error.strerror}") from error


@dataclass
class _Taken:
    """The records of a ledger that were taken so far."""

    steps: dict[str, UndoStep] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> tuple[UndoStep, ...]:
        return tuple(step for step in reversed(self.steps.values()) if step.id not in self.closed)

    def holds(self, record: dict[str, Any]) -> bool:
        """Return whether a record closes one of the steps taken."""
        key = record.get("id")
        return record.get("record") == "close" and isinstance(key, str) and key in self.steps

    def take(self, record: dict[str, Any], *, strict: bool = True) -> None:
        """Take one more record.

        Raises ValueError for anything else, or, where ``strict``, for a record that does not follow.
        """
        match record:
            case {
                "record": "step",
                "id": str(key),
                "fault": str() | None,
                "action": str(),
                "arguments": dict(),
                "note": str(),
            }:
                if key in self.steps:
                    raise ValueError(f"step {key} was recorded before")
                step = UndoStep(key, record["fault"], record["action"], record["arguments"], record["note"])
                self.steps[key] = step
            case {"record": "close", "id": str(key), "outcome": str(outcome)}:
                if strict and key not in self.steps:
                    raise ValueError(f"step {key} is closed but was never recorded")
                self.closed[key] = outcome
            case _:
                raise ValueError("neither a step nor a close")


def _last_line(path: Path) -> bytes:
    """Return the last whole line, as a reader finds it; empty where it is too long, and where there is none."""
    last = b""
    for line in read_lines(path):
        if not line.torn:
            last = line.text or b""
    return last


def _drop_torn_line(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    if size > 4 * MAX_BYTES:
        raise LedgerError(f"a ledger of {size:,} bytes has no known writer; nothing is added to it")
    end = size
    while end:
        start = max(0, end - _BLOCK)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(descriptor, end)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
