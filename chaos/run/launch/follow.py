"""Follows the output of a run while it runs: the ranks' history files, and the job's logs.

Only for triggers, deadlines and the live view. Verdicts are made from the files afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.history.jsonl import decode
from chaos.history.tail import TailedFile


class RankFollower:
    """The events that the ranks of one attempt have recorded since the last look."""

    def __init__(self, history: Path, attempt: str) -> None:
        self._history = history
        self._pattern = f"{attempt}-rank_*.jsonl"
        self._files: dict[Path, TailedFile] = {}

    def new_events(self) -> Iterator[dict[str, Any]]:
        """Yield the events as they stand in the files; a line that is not JSON is left to the history's reader."""
        for path in sorted(self._history.glob(self._pattern)):
            tail = self._files.setdefault(path, TailedFile(path, mapped=True))
            for line in tail.new_lines():
                try:
                    event = decode(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event


class LogFollower:
    """Lines that the ranks (and, as None, launcher and scheduler) have logged since the last look."""

    def __init__(self, logs: Path, ranks: int) -> None:
        self._tails: list[tuple[int | None, TailedFile]] = [
            (rank, TailedFile(logs / f"worker_{rank}.log")) for rank in range(ranks)
        ]
        self._tails += [(None, TailedFile(logs / name)) for name in ("scheduler.log", "msrun.log")]

    def new_lines(self) -> Iterator[tuple[int | None, str]]:
        """Yield (rank or None, line)."""
        for rank, tail in self._tails:
            for line in tail.new_lines():
                yield rank, line.decode("utf-8", "replace")
