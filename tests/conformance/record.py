"""What a process of a conformance job writes down: one JSON line for each thing that happens in it.

``at`` is the machine's monotonic clock, the same in all processes, ``wall`` that of the SDK's logs. ``late`` is how
many seconds this process has been kept waiting by the machine so far, measured by a thread that only sleeps: what it
gained between two lines is not the SDK's doing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

_NAP_SECONDS = 0.01


class Record:
    """Appends to ``record-NAME.jsonl``; a line outlives a SIGKILL that follows it."""

    def __init__(self, name: str) -> None:
        self._file = os.open(f"record-{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._late = 0.0
        threading.Thread(target=self._measure, daemon=True).start()

    def write(self, kind: str, name: str, *values: Any) -> None:
        """Write a line: ``kind`` is act, handler, returned, call or agent."""
        times = {"at": time.monotonic(), "wall": time.time(), "late": self._late}
        line = {**times, "kind": kind, "name": name, "values": values}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def _measure(self) -> None:
        never = threading.Event()
        while True:
            before = time.monotonic()
            never.wait(_NAP_SECONDS)
            self._late += max(0.0, time.monotonic() - before - _NAP_SECONDS)


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of a record; what a kill has cut off is no line."""
    whole = path.read_text("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in whole]
