"""The first errors in the logs of a run: a reader looks for them first when the run has not passed.

An error is a line of level ERROR or above, or the last line of a Python traceback. Nothing is judged by them: a fault
makes errors that the plan expects. Only the beginning of each log is searched, so that a run of many gigabytes does not
take long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timezone
from pathlib import Path

from chaos.base.plain_files import open_plain
from chaos.evidence.artifacts import SDK_LOGS
from chaos.evidence.text import readable
from chaos.observe.logs.error_line import ErrorLineReader
from chaos.observe.logs.launcher_prefix import strip_launcher
from chaos.observe.logs.lines import LineSplitter
from chaos.observe.logs.records import is_repeated, split_records

MOST_BYTES = 16 << 20
"""Bytes at the beginning of a log that are searched."""

MOST_BYTES_IN_ALL = 256 << 20
MOST_LOGS = 20_000
MOST_LINES = 200_000
"""Lines in all that may be errors and are examined closely."""

MOST_OF_A_LOG = 3
MOST = 8
LONGEST = 300

_CHUNK = 1 << 20
_FIRST = ("train",)
_MARKS = ("ERROR", " error ", "CRITICAL", " critical ", "FATAL", " fatal ", "EXCEPTION", "Error", "Exception", ":[E")
_IN_BYTES = (*(mark.encode() for mark in _MARKS), b"\nE", b"\nF")
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,120}(?:Error|Exception)(?::|$)")
_WORKER = re.compile(r"worker_(\d{1,9})(?:\.before-\d{1,9})?\.log")
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True)
class FirstError:
    """An error in a log. ``alike`` counts the attempt's other logs with the same error, numbers aside."""

    attempt: str
    rank: int | None
    file: str
    line: int
    text: str
    alike: int = 0


@dataclass
class _Left:
    """How much may still be read."""

    bytes: int = MOST_BYTES_IN_ALL
    logs: int = MOST_LOGS
    lines: int = MOST_LINES

    @property
    def none(self) -> bool:
        return min(self.bytes, self.logs, self.lines) <= 0


@dataclass(frozen=True)
class _TimedError:
    error: FirstError
    wall_ns: int | None


def first_errors(run_dir: Path) -> tuple[FirstError, ...]:
    """Return the first errors of a run, the first attempt's before the others; by time where the lines have one."""
    errors: list[FirstError] = []
    left = _Left(MOST_BYTES_IN_ALL, MOST_LOGS, MOST_LINES)
    for directory in _attempts(run_dir / "logs"):
        candidates: list[_TimedError] = []
        for path in _logs(directory):
            if left.none:
                break
            try:
                candidates += _errors_of(path, directory.name, path.relative_to(run_dir).as_posix(), left)
            except OSError:  # the checks that need this log say so
                continue
            finally:
                left.logs -= 1
        errors += _alike(sorted(candidates, key=_moment))
    return tuple(errors[:MOST])


def _attempts(logs: Path) -> list[Path]:
    if not logs.is_dir() or logs.is_symlink():
        return []
    directories = [path for path in logs.iterdir() if path.is_dir() and not path.is_symlink()]
    return sorted(directories, key=lambda path: (path.name not in _FIRST, path.name))


def _logs(directory: Path) -> list[Path]:
    paths = {path for pattern in ("*.log", *SDK_LOGS) for path in directory.glob(pattern)}
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def _errors_of(path: Path, attempt: str, name: str, left: _Left) -> Iterator[_TimedError]:
    """Yield the first errors of one log. An error without a time was written after the last one that has a time."""
    reader, splitter = ErrorLineReader(timezone.utc), LineSplitter()
    match = _WORKER.fullmatch(path.name)
    rank = int(match[1]) if match else None
    wall_ns: int | None = None
    count = 0
    with open_plain(path) as stream:
        while stream.tell() < MOST_BYTES and (chunk := stream.read(_CHUNK)):
            left.bytes -= len(chunk)
            begin = splitter.lines + 1
            lines = splitter.feed(chunk)
            if not any(mark in chunk for mark in _IN_BYTES):
                continue
            for number, line in enumerate(lines, begin):
                if not line.startswith(("E", "F")) and not any(mark in line for mark in _MARKS):
                    continue
                left.lines -= 1
                if left.lines < 0:
                    return
                error = _error_in(reader, line)
                if error is None:
                    continue
                text, own_rank, own_wall = error
                wall_ns = wall_ns if own_wall is None else own_wall
                rank_text = rank if own_rank is None else own_rank
                yield _TimedError(FirstError(attempt, rank_text, name, number, readable(text[:LONGEST])), wall_ns)
                count += 1
                if count == MOST_OF_A_LOG:
                    return


def _error_in(reader: ErrorLineReader, line: str) -> tuple[str, int | None, int | None] | None:
    text = strip_launcher(line).text
    if is_repeated(text):
        return None
    for part in split_records(text):
        if (error := reader.apart(part)) is not None:
            return part.strip(), error.rank, error.wall_ns
    return (text.strip(), None, None) if _RAISED.match(text) else None


def _moment(error: _TimedError) -> tuple[float, str, int]:
    return (float("inf") if error.wall_ns is None else error.wall_ns, error.error.file, error.error.line)


def _alike(candidates: list[_TimedError]) -> list[FirstError]:
    """Return each error once, with how many other logs have it."""
    kept: dict[str, FirstError] = {}
    logs: dict[str, set[str]] = {}
    for candidate in candidates:
        key = _NUMBERS.sub("0", candidate.error.text)
        kept.setdefault(key, candidate.error)
        logs.setdefault(key, set()).add(candidate.error.file)
    return [replace(error, alike=len(logs[key]) - 1) for key, error in kept.items()]
