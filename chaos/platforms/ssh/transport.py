"""The stream to a helper on a host: a command's channel.

A lost connection is the end of the stream, and not an error.
"""

from __future__ import annotations

import contextlib
import socket
import threading

import paramiko

from chaos.platforms.ssh.connection import Connection

_READ = 1 << 16
_END_SECONDS = 5.0
_KEPT_WORDS = 4000


class ChannelTransport:
    """A remote helper that ``command`` starts on the host of ``connection``."""

    def __init__(self, connection: Connection, command: str) -> None:
        """Start the command. Raises HostUnreachable."""
        self._connection = connection
        self._channel = connection.open_channel(command)
        self._channel.settimeout(None)
        self._lock = threading.Lock()
        self._closed = False

    def write(self, data: bytes) -> None:
        """Write all of the data."""
        try:
            self._channel.sendall(data)
        except (OSError, paramiko.SSHException, EOFError) as error:
            raise BrokenPipeError(f"the channel to {self._connection.host} is closed: {error}") from error

    def read(self) -> bytes:
        """Return the next bytes."""
        try:
            return self._channel.recv(_READ)
        except (paramiko.SSHException, EOFError):
            return b""

    def close(self) -> None:
        """Close the program's input, wait until it ends by that, and close the channel."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with contextlib.suppress(OSError, paramiko.SSHException, EOFError):
            self._channel.shutdown_write()
        self._channel.status_event.wait(_END_SECONDS)
        with contextlib.suppress(OSError, paramiko.SSHException, EOFError):
            self._channel.close()

    def ended(self) -> str:
        """Return how the remote helper ended and its last words, or that the connection was lost."""
        self._channel.status_event.wait(0.5 if self._connection.alive else 0)
        code = self._channel.exit_status
        if code < 0:
            return f"the connection to {self._connection.host} was lost"
        data = b""
        self._channel.settimeout(0.1)
        with contextlib.suppress(socket.timeout, OSError):
            while piece := self._channel.recv_stderr(_READ):
                data = (data + piece)[-_KEPT_WORDS:]
        text = data.decode("utf-8", "replace").strip()
        return f"exit code {code}{text and f': {text}'}"
