"""The exit statuses of ranks that the launcher itself collected, as its agent recorded them."""

from __future__ import annotations

from pathlib import Path

from chaos.history.jsonl import decode
from chaos.history.tail import TailedFile
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity


class ReapedByLauncher:
    """Answers how a process of one attempt ended, from the events ``child.exit``."""

    def __init__(self, history: Path, attempt: str, node: int | None = None) -> None:
        self._history = history
        self._pattern = f"{attempt}-launcher{'' if node is None else f'_{node}'}-*.jsonl"
        self._files: dict[Path, TailedFile] = {}
        self._ended: dict[tuple[int, int], ExitStatus] = {}

    def __call__(self, identity: ProcessIdentity) -> ExitStatus | None:
        """Return the recorded status, None as long as there is none."""
        for path in self._history.glob(self._pattern):
            for line in self._files.setdefault(path, TailedFile(path, mapped=True)).new_lines():
                self._take(line)
        return self._ended.get((identity.pid, identity.start_time))

    def _take(self, line: bytes) -> None:
        try:
            event = decode(line)
        except ValueError:  # left to the history's reader
            return
        match event:
            case {
                "event": "child.exit",
                "child_pid": int(pid),
                "start_time": int(start),
                "signal": int() | None as signal,
                "code": int() | None as code,
            }:
                self._ended[pid, start] = ExitStatus(signal, code)
