"""The bytes to a remote helper and back: each way to start the helper on its node gives a transport."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_READ = 1 << 16
_END_SECONDS = 5.0
_KEPT_WORDS = 4000
OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {}
"""Ctrl-C is the harness's. The child's session stays the harness's too: children in another session count as the job's.
"""


class Transport(Protocol):
    """A stream of bytes to a remote helper and back. ``write`` and ``close`` may be called from several threads."""

    def write(self, data: bytes) -> None:
        """Write all of it. Raises OSError when the remote helper is gone."""

    def read(self) -> bytes:
        """Return the next bytes; empty at the end of the stream. Raises OSError."""

    def close(self) -> None:
        """End the remote helper's input, which ends the helper, and let go of it. May be called twice."""

    def ended(self) -> str:
        """Return the reason for the end of the stream, in words for a person.

        Called only after :meth:`read` has returned nothing.
        """


class SubprocessTransport:
    """A helper that is a child of this process, or of a program that reaches another node (``ssh``, ``nsenter``)."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the child, in a process group of its own. Raises OSError when it cannot be started."""
        self._process = subprocess.Popen(
            argv,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **OWN_GROUP,
        )
        self._words = bytearray()
        self._listener = threading.Thread(target=self._keep_words, name="helper-words", daemon=True)
        self._listener.start()
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """The child's PID."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write all of it."""
        assert self._process.stdin is not None
        try:
            while data:
                data = data[self._process.stdin.write(data) or 0 :]
        except ValueError as error:  # closed meanwhile
            raise BrokenPipeError("the remote helper's input was closed") from error

    def read(self) -> bytes:
        """Return the next bytes."""
        assert self._process.stdout is not None
        try:
            return self._process.stdout.read(_READ) or b""
        except ValueError:
            return b""

    def close(self) -> None:
        """End its input, and the remote helper where that does not end it."""
        with self._lock:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._listener.join(_END_SECONDS)

    def ended(self) -> str:
        """Return its exit status and its last words."""
        with self._lock:
            try:
                code = self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                return "it has closed its output"
        self._listener.join(_END_SECONDS)
        words = self._words.decode("utf-8", "replace").strip()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{how}{words and f': {words}'}"

    def _keep_words(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as words:
            while chunk := words.read(_READ):
                self._words += chunk
                del self._words[:-_KEPT_WORDS]
