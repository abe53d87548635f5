"""The agent's end of the channel by which faults reach a rank: a Unix socket that only the run's owner can open."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

_CONNECT_SECONDS = 10.0
_AGAIN_SECONDS = 0.01


class Channel:
    """One connection to the harness. Messages are JSON lines in both directions.

    The first message carries the run's secret; the answer lists the faults that are armed for this rank. When the
    harness is gone the channel is closed and :meth:`ask` returns None: a rank never waits for a dead harness.
    """

    def __init__(self, path: str, secret: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _connect(self._socket, path)
        self._secret = secret
        self._lock = threading.Lock()
        self._input = self._socket.makefile("r", encoding="utf-8", newline="\n")

    def hello(self, *, run: str, attempt: str, rank: int, pid: int) -> list[dict[str, Any]] | None:
        """Introduce this rank; return the armed faults, ``[{fault, step, phase}, …]``, or None on a refusal."""
        answer = self.ask(
            {"message": "hello", "secret": self._secret, "run": run, "attempt": attempt, "rank": rank, "pid": pid}
        )
        return list(answer["armed"]) if answer and answer.get("message") == "welcome" else None

    def introduce(self, *, endpoint: str, run: str, attempt: str, rank: int | None, pid: int) -> bool:
        """Introduce a control endpoint, a part of the job that takes the harness's orders. False if it is refused."""
        answer = self.ask(
            {
                "message": "hello",
                "secret": self._secret,
                "run": run,
                "attempt": attempt,
                "endpoint": endpoint,
                "rank": rank,
                "pid": pid,
            }
        )
        return answer is not None and answer.get("message") == "welcome"

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message without waiting for an answer; does nothing when the harness is gone."""
        try:
            self._socket.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            return

    def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Send a message and return the answer; None when the harness is gone."""
        with self._lock:
            self.tell(message)
            return self.receive()

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message and return it; None when the harness is gone."""
        try:
            line = self._input.readline()
        except OSError:
            return None
        return json.loads(line) if line.endswith("\n") else None


def _connect(to_harness: socket.socket, path: str) -> None:
    """Connect; try again while more callers wait there than the kernel keeps. Raises OSError when nobody listens."""
    deadline = time.monotonic() + _CONNECT_SECONDS
    to_harness.settimeout(_CONNECT_SECONDS)
    while True:
        try:
            to_harness.connect(path)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_SECONDS)
        else:
            to_harness.settimeout(None)
            return
