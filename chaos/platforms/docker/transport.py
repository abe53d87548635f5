"""A remote helper in a container, reached by the engine's ``exec`` with its streams."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chaos.platforms.docker.engine import engine_errors

if TYPE_CHECKING:
    from docker.models.containers import Container

_HEADER = struct.Struct(">BxxxL")
_STDOUT = 1
_KEPT_WORDS = 4000


class ExecTransport:
    """Starts a program in a container. Its output comes in frames, of standard output and of standard error."""

    def __init__(self, container: Container, argv: Sequence[str]) -> None:
        """Start the program. Raises PlatformError when it cannot be started."""
        assert container.client is not None
        self._api = container.client.api
        self._words = bytearray()
        with engine_errors(f"no program can be started in container {container.name}"):
            made = self._api.exec_create(container.id, list(argv), stdin=True, stdout=True, stderr=True)
            self._exec = str(made["Id"])
            stream: Any = self._api.exec_start(self._exec, socket=True)
        self._stream = stream
        self._socket: socket.socket = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)

    def write(self, data: bytes) -> None:
        """Write all of the data."""
        self._socket.sendall(data)

    def read(self) -> bytes:
        """Return the next bytes of standard output."""
        while header := self._exactly(_HEADER.size):
            stream, size = _HEADER.unpack(header)
            content = self._exactly(size)
            if stream == _STDOUT and content:
                return content
            self._words += content
            del self._words[:-_KEPT_WORDS]
        return b""

    def close(self) -> None:
        """Close the program's input, and the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._stream.close()

    def ended(self) -> str:
        """Return its exit code and its last words, as far as the engine knows them."""
        words = self._words.decode("utf-8", "replace").strip()
        try:
            with engine_errors("exec"):
                code = self._api.exec_inspect(self._exec).get("ExitCode")
        except Exception as error:  # whatever is wrong with the engine, the remote helper is lost all the same
            return f"its stream has ended, and the engine does not say why ({error}){words and f': {words}'}"
        how = "its stream has ended" if code is None else f"exit code {code}"
        return f"{how}{words and f': {words}'}"

    def _exactly(self, size: int) -> bytes:
        """Return so many bytes, or nothing when the stream ends before."""
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self._socket.recv(size - len(data))
            except OSError:
                return b""
            if not chunk:
                return b""
            data += chunk
        return bytes(data)
