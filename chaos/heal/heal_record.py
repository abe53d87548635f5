"""The record of a heal, in the history of its run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chaos.base.clock import Clock
from chaos.base.plain_files import UnreadableFile
from chaos.history.writer import HistoryWriteError, HistoryWriter

_UNRECORDED = "what was done is not on record, heal again when the reports directory can be written"


class HealRecord:
    """The history of one heal. Acts that cannot be recorded are done all the same, and the report says so once."""

    def __init__(self, run_dir: Path, token: str, failures: list[str], clock: Clock) -> None:
        """Open the history of a heal; ``failures`` receives the reason when an act cannot be recorded."""
        self._failures = failures
        self._history: HistoryWriter | None = None
        path = run_dir / "history" / f"heal-{os.getpid()}.jsonl"
        try:
            path.parent.mkdir(exist_ok=True)
            if path.parent.is_symlink():
                raise UnreadableFile(path.parent, "is a link; links are not written through")
            self._history = HistoryWriter(path, writer="heal", run=token, clock=clock, resume=True)
        except (HistoryWriteError, OSError) as error:
            self.failed(error)

    def __call__(self, event: str, **data: Any) -> None:
        if self._history is None:
            return
        try:
            self._history.record(event, **data)
        except HistoryWriteError as error:
            self.failed(error)
            self.close()

    def failed(self, error: Exception) -> None:
        """Report why something is not on record; the first reason is enough."""
        if not any(text.startswith(_UNRECORDED) for text in self._failures):
            self._failures.append(f"{_UNRECORDED}: {error}")

    def close(self) -> None:
        """Close the file."""
        if self._history is not None:
            self._history.close()
            self._history = None
