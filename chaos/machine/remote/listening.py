"""On a node: the Unix socket that the agents of that node call, and their lines, handed on to the harness.

The remote helper judges nothing: it reports the calling process and user by the kernel's word, and the harness decides.
It listens in a private directory of the node only, never on a network.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.agent.unproven import Unproven, callers

_CREDENTIALS = struct.Struct("3i")
_MAX_LINE = 1 << 16
_BACKLOG = 256


class Listening:
    """Listens on ``path``. ``tell`` is given the events ``agent.open``, ``agent.line`` and ``agent.end``."""

    def __init__(self, path: str, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._callers: dict[int, socket.socket] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._unproven = Unproven()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        Path(path).chmod(0o600)
        self._listener.listen(_BACKLOG)
        threading.Thread(target=self._accept, name="agents", daemon=True).start()

    def answer(self, number: int, line: str) -> None:
        """Send a line to a caller; do nothing when it has gone."""
        with self._lock:
            caller = self._callers.get(number)
        if caller is not None:
            with contextlib.suppress(OSError):
                caller.sendall(line.encode() + b"\n")

    def end(self, number: int) -> None:
        """End the connection of a caller."""
        with self._lock:
            caller = self._callers.get(number)
        if caller is not None:
            with contextlib.suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening and release every held rank."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            numbers = list(self._callers)
        for number in numbers:
            self.end(number)

    def _accept(self) -> None:
        for caller in callers(self._listener, self._unproven, self._closing):
            with self._lock:
                self._count += 1
                number = self._count
                self._callers[number] = caller
            threading.Thread(target=self._serve, args=(number, caller), daemon=True).start()

    def _serve(self, number: int, caller: socket.socket) -> None:
        pid, uid, _ = _CREDENTIALS.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        self._tell({"event": "agent.open", "caller": number, "pid": pid, "uid": uid})
        with contextlib.suppress(OSError), caller.makefile("rb") as lines:
            while line := lines.readline(_MAX_LINE):
                self._unproven.leave(caller)
                if not line.endswith(b"\n"):
                    break
                self._tell({"event": "agent.line", "caller": number, "line": line.decode("utf-8", "replace")})
        self._unproven.leave(caller)
        with self._lock:
            self._callers.pop(number, None)
        caller.close()
        self._tell({"event": "agent.end", "caller": number})
