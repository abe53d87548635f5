"""Reaching a host that goes down or comes up: tried again until a deadline; a broken answer counts as none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from chaos.base.clock import Clock
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.connection import Connection, HostUnreachable, LoginRefused
from chaos.platforms.ssh.inventory import Host

T = TypeVar("T")

_BOOT = "cat /proc/sys/kernel/random/boot_id"
_POLL_SECONDS = 0.2


class Reach:
    """Ways to one host."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._let_in = False

    def connected(self, seconds: float) -> Connection:
        """Return a connection, tried again and again for so long.

        Raises HostUnreachable, and PlatformError when refused.
        """
        return self._until(seconds, self._connection)

    def boot_within(self, seconds: float, ending: str | None = None) -> str | None:
        """Return the boot ID that the host gives within so long; None where it gives none. Raises PlatformError.

        ``ending`` is a boot whose end was ordered: while the host is still in that boot, it is asked again.
        """
        shown: str | None = None

        def next_boot() -> str:
            nonlocal shown
            shown = None
            with self._connection() as connection:
                shown = boot_shown(connection)
            if shown == ending:
                raise HostUnreachable(f"{self._host}: is still in boot {shown}")
            return shown

        try:
            return self._until(seconds, next_boot)
        except HostUnreachable:
            return shown

    def _connection(self) -> Connection:
        """Return a connection. A host that refuses a user whom it has let in goes down or comes up (pam_nologin)."""
        try:
            connection = Connection(self._host)
        except LoginRefused as error:
            if not self._let_in:
                raise
            raise HostUnreachable(f"{error}; it has let this user in before") from error
        self._let_in = True
        return connection

    def _until(self, seconds: float, ask: Callable[[], T]) -> T:
        until = self._clock.mono() + int(seconds * 1e9)
        while True:
            try:
                return ask()
            except HostUnreachable:
                if self._clock.mono() >= until:
                    raise
            self._clock.sleep(_POLL_SECONDS)


def boot_shown(connection: Connection) -> str:
    """Return the boot ID of a host; a login's own files may print something before it.

    Raises HostUnreachable where the connection breaks before, and PlatformError where the host gives no boot ID.
    """
    code, output = connection.run(_BOOT)
    if code < 0:
        raise HostUnreachable(f"{connection.host}: the connection was lost before the host reported its boot")
    if code > 0 or not output.strip():
        raise PlatformError(f"{connection.host}: {_BOOT} ended with {code}: {output.strip()}")
    return output.split()[-1]
