"""One connection to a host: its key is checked, its silence is limited, and every failure says what to do."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import logging
import socket
import threading
from pathlib import Path
from types import TracebackType

import paramiko

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.inventory import Host, key_problem

_EXEC_SECONDS = 30.0
_MAX_OUTPUT = 1 << 20

# The library reports each failure to a logger of its own as well, with a traceback; here it is raised.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class HostUnreachable(PlatformError):
    """No answer from the host now: the host is down, or the network to it."""


class LoginRefused(PlatformError):
    """The host answers and refuses this user. A host that goes down or comes up admits nobody but root."""


_BROKEN_OFF = ("transport shut down", "Authentication timeout")
"""The library's words for a login that was not refused: the connection ended meanwhile, or nothing was received."""


_SAYS_NOTHING = ("protocol banner", "No existing session", "Negotiation failed")
"""The library's words for a port behind which nothing answers, or something other than sshd."""


class Connection:
    """An open connection to ``host``. Its channels may be used from several threads."""

    def __init__(self, host: Host) -> None:
        """Connect and log in. Raises HostUnreachable when nothing answers, LoginRefused, and PlatformError."""
        self.host = host
        if (problem := key_problem(host)) is not None:
            raise PlatformError(f"{host}: {problem}")
        self._client = _client(host)
        self._lock = threading.Lock()
        try:
            stream = socket.create_connection((host.address, host.port), timeout=host.connect)
        except OSError as error:
            raise HostUnreachable(f"{host}: does not answer: {error}") from error
        # Unacknowledged data ends the connection; otherwise a host that vanished would be awaited.
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(host.lost * 1000))
        try:
            self._client.connect(
                host.address,
                port=host.port,
                username=host.user,
                key_filename=host.key,
                allow_agent=host.key is None,
                look_for_keys=False,
                sock=stream,
                timeout=host.connect,
                banner_timeout=host.connect,
                auth_timeout=host.connect,
            )
        except BaseException as error:
            self._client.close()
            stream.close()
            raise _for_operator(host, error) from error
        transport = self._client.get_transport()
        assert transport is not None
        transport.set_keepalive(max(1, round(host.keepalive)))
        self._transport = transport

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as is known."""
        return self._transport.is_active()

    def open_channel(self, command: str) -> paramiko.Channel:
        """Start a command of this run on the host. Raises PlatformError when the connection is lost."""
        try:
            channel = self._transport.open_session(timeout=self.host.connect)
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise HostUnreachable(f"{self.host}: the connection was lost: {error or type(error).__name__}") from error
        return channel

    def sftp(self) -> paramiko.SFTPClient:
        """Return a channel for files. Raises PlatformError."""
        try:
            opened = self._transport.open_sftp_client()
            if opened is None:
                raise EOFError("no channel was opened")
            return opened
        except (paramiko.SSHException, EOFError, OSError) as error:
            if self.alive:
                advice = "its sshd needs the line 'Subsystem sftp internal-sftp'"
                raise PlatformError(f"{self.host}: offers no sftp: {error}; {advice}") from error
            raise HostUnreachable(f"{self.host}: the connection was lost: {error}") from error

    def run(self, command: str, seconds: float = _EXEC_SECONDS) -> tuple[int, str]:
        """Run a command to its end; return its exit code and its output. Raises PlatformError."""
        with contextlib.closing(self.open_channel(command)) as channel:
            channel.settimeout(seconds)
            channel.set_combine_stderr(True)
            output = b""
            try:
                while (piece := channel.recv(1 << 16)) and len(output) < _MAX_OUTPUT:
                    output += piece
                return channel.recv_exit_status(), output.decode("utf-8", "replace")
            except (TimeoutError, OSError) as error:
                raise HostUnreachable(f"{self.host}: does not answer within {seconds:g} s") from error

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._client.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def fingerprint_of(key: paramiko.PKey) -> str:
    """Return a host key's fingerprint as ``ssh-keygen -l`` prints it."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"SHA256:{base64.b64encode(digest).decode('ascii').rstrip('=')}"


class _ByFingerprint(paramiko.MissingHostKeyPolicy):
    """Accepts only the key whose fingerprint the inventory gives."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        shown = fingerprint_of(key)
        if shown != self._fingerprint:
            raise UnknownHostKey(f"shows the {key.get_name()} key {shown}, and the inventory has {self._fingerprint}")


class _Refused(paramiko.MissingHostKeyPolicy):
    """Accepts no key."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise UnknownHostKey(
            f"its {key.get_name()} key {fingerprint_of(key)} is not in {self._host.known_hosts}; compare it with what "
            f"'ssh-keygen -l -f /etc/ssh/ssh_host_{key.get_name().split('-')[-1]}_key.pub' says on the host, and write "
            "it into the inventory as 'fingerprint', or the key into known_hosts"
        )


class UnknownHostKey(paramiko.SSHException):
    """The host's key is not the known key."""


def _client(host: Host) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    if host.fingerprint is not None:
        client.set_missing_host_key_policy(_ByFingerprint(host.fingerprint))
        return client
    client.set_missing_host_key_policy(_Refused(host))
    if Path(host.known_hosts).is_file():
        try:
            client.load_system_host_keys(host.known_hosts)
        except (OSError, paramiko.SSHException) as error:
            raise PlatformError(f"{host}: {host.known_hosts} cannot be read: {error}") from error
    return client


def _for_operator(host: Host, error: BaseException) -> BaseException:
    """Return the error in words for the operator; an error that is not the connection's stays as it is."""
    if isinstance(error, paramiko.BadHostKeyException):
        shown, known = fingerprint_of(error.key), fingerprint_of(error.expected_key)
        text = f"its host key has changed: {shown}, and {host.known_hosts} has {known}; find out why before you go on"
        return PlatformError(f"{host}: {text}")
    if isinstance(error, UnknownHostKey):
        return PlatformError(f"{host}: {error}")
    if isinstance(error, paramiko.PasswordRequiredException):
        return PlatformError(f"{host}: key file {host.key} has a passphrase: add it to an SSH agent, and name no key")
    if isinstance(error, paramiko.AuthenticationException) and any(text in str(error) for text in _BROKEN_OFF):
        return HostUnreachable(f"{host}: the login was broken off: {error}")
    if isinstance(error, paramiko.AuthenticationException):
        what = f"key file {host.key}" if host.key else "the SSH agent"
        return LoginRefused(f"{host}: refuses user {host.user} with the keys of {what}: look at its authorized_keys")
    if isinstance(error, paramiko.SSHException) and any(text in str(error) for text in _SAYS_NOTHING):
        text = f"accepts a connection and then does not speak SSH for {host.connect:g} s (deadlines.connect)"
        return HostUnreachable(f"{host}: {text}: look at its sshd, and at the port")
    if isinstance(error, (paramiko.SSHException, EOFError, OSError, ValueError)):
        return HostUnreachable(f"{host}: no connection: {error or type(error).__name__}")
    return error
