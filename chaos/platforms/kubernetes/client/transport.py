"""A remote helper in a pod, reached through an exec stream of the API."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from chaos.machine.remote.bundle import bundle

_STDOUT, _STDERR, _ERROR = 1, 2, 3
_PIECE = 1 << 15
"""Bytes of one frame: API servers and container runtimes read frames whole."""

_LOOK_SECONDS = 0.5
_KEPT_WORDS = 4000


class ExecTransport:
    """The streams of a program in a pod. ``stream`` is the ``WSClient`` of the kubernetes package, in bytes."""

    def __init__(self, stream: Any) -> None:
        """Send the remote helper. Raises OSError when the stream has ended already."""
        self._stream = stream
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self._words = b""
        self.write(bundle())

    def write(self, data: bytes) -> None:
        """Write all of the data."""
        with self._writing:
            try:
                for start in range(0, len(data), _PIECE):
                    self._stream.write_stdin(data[start : start + _PIECE])
            except Exception as error:  # the websocket package has exceptions of its own for each way to end
                raise BrokenPipeError(f"the exec stream has ended: {error}") from error

    def read(self) -> bytes:
        """Return the next bytes."""
        while True:
            try:
                self._stream.update(timeout=_LOOK_SECONDS)
                self._words = (self._words + self._take(_STDERR))[-_KEPT_WORDS:]
                if data := self._take(_STDOUT):
                    return data
                if self._closed.is_set() or not self._stream.is_open():
                    return b""
            except Exception as error:
                self._words += f" {type(error).__name__}: {error}".encode()
                return b""

    def close(self) -> None:
        """Close the stream; the container's runtime ends the remote helper's input then."""
        self._closed.set()
        with contextlib.suppress(Exception):
            self._stream.close()

    def ended(self) -> str:
        """Return the container runtime's message, and the remote helper's last words."""
        with contextlib.suppress(Exception):
            message = self._take(_ERROR).decode("utf-8", "replace").strip()
            words = self._words.decode("utf-8", "replace").strip()
            return "the exec stream has ended" + "".join(f": {text}" for text in (message, words) if text)
        return "the exec stream has ended"

    def _take(self, channel: int) -> bytes:
        """Return the data received on a channel; it does not wait."""
        if not self._stream.peek_channel(channel):
            return b""
        data: bytes = self._stream.read_channel(channel)
        return data
