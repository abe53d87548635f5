"""The losses that only the log of a rank holds, by the readers of the report, while the log is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timezone
from pathlib import Path
from typing import BinaryIO, cast

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.other_losses import counts, loss_of
from chaos.observe.logs.registered import registered_readers
from chaos.observe.logs.tail import LogTail


class LoggedLoss:
    """The last loss in the log of one rank. Only what is new is read, and of a long log its end."""

    def __init__(self, run_dir: Path, rank: int) -> None:
        self._run_dir = run_dir
        self._rank = rank
        self._readers: Sequence[LogReader] = ()
        self._tail: LogTail | None = None
        self._inode = -1
        self._attempt = ""
        self._last: tuple[int, float] | None = None

    def last(self, attempt: str) -> tuple[int, float] | None:
        """Return the last step with its loss in a launch. Raises the errors of readers, and OSError."""
        if attempt != self._attempt:
            self._attempt, self._last = attempt, None
            self._leave()
        path = self._run_dir / "logs" / attempt / f"worker_{self._rank}.log"
        if not self._is_open(path):
            return self._last
        assert self._tail is not None
        for event in self._tail.new_events():
            if event.step and counts(event, self._rank) and (loss := loss_of(event, path)) is not None:
                self._last = event.step, loss
        return self._last

    def of_baseline(self) -> dict[int, float]:
        """Return the losses in the logs of the fault-free run by their steps."""
        from chaos.evidence.artifacts import Artifacts  # and numpy

        values: dict[int, float] = {}
        for _, columns in Artifacts(self._run_dir, None).baseline_losses(self._rank):
            steps, losses = columns.step[columns.present], columns.loss[columns.present]
            values.update(zip(steps.tolist(), losses.tolist(), strict=True))
        return values

    def _is_open(self, path: Path) -> bool:
        """Open the log, unless it is open or not there. That of another process of the rank is another file."""
        try:
            if path.lstat().st_ino == self._inode:
                return True
            self._leave()
            stream = open_plain(path)
        except (FileNotFoundError, UnreadableFile):
            return False
        if not self._readers:
            self._readers = registered_readers(timezone.utc)
        self._inode = os.fstat(stream.fileno()).st_ino
        self._tail = LogTail(cast("BinaryIO", stream), self._readers, name=path.name)
        return True

    def _leave(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._tail, self._inode = None, -1
