"""Putting a host back: its processes of the run ended, the run's directory removed.

Also for a harness that was killed.
"""

from __future__ import annotations

import contextlib
import shlex

from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.bundle import bundle, helper_argv
from chaos.machine.remote.client import HelperClient
from chaos.platforms.ssh.connection import Connection
from chaos.platforms.ssh.host_helper import NoRoom, helper_transport, make_place, marker_of, place_of
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.transport import ChannelTransport


class _Again(HelperClient):
    """A remote helper with a connection of its own."""

    def __init__(self, connection: Connection, node: int, token: str) -> None:
        self._own = connection
        place = place_of(connection.host.directory, token, node)
        make_place(connection, place, token)
        super().__init__(helper_transport(connection, place), node, token)

    def close(self) -> None:
        """Close the helper and the connection."""
        super().close()
        self._own.close()


class _Passing(HelperClient):
    """A remote helper whose program is sent through a connection of its own."""

    def __init__(self, connection: Connection, node: int, token: str) -> None:
        self._own = connection
        transport = ChannelTransport(connection, shlex.join(helper_argv(connection.host.python)))
        try:
            transport.write(bundle())
        except OSError as error:
            raise PlatformError(f"{connection.host}: no remote helper can be started: {error}") from error
        super().__init__(transport, node, token)

    def close(self) -> None:
        """Close the helper and the connection."""
        super().close()
        self._own.close()


def restarted_helper(host: Host, token: str, node: int) -> HelperClient | None:
    """Return a new remote helper there; None when the run has no directory there any more. Raises PlatformError."""
    connection = Connection(host)
    try:
        if marker_of(connection, place_of(host.directory, token, node)) is None:
            connection.close()
            return None
        return _Again(connection, node, token)
    except BaseException:
        connection.close()
        raise


def helper_without_directory(host: Host, token: str, node: int) -> HelperClient:
    """Return a remote helper there without any file. Raises PlatformError."""
    connection = Connection(host)
    try:
        return _Passing(connection, node, token)
    except BaseException:
        connection.close()
        raise


def left_on(host: Host, token: str, node: int) -> list[str]:
    """Return a host's leftovers of the run: its directory there.

    Raises PlatformError where the host does not answer.
    """
    place = place_of(host.directory, token, node)
    with Connection(host) as connection:
        return [] if marker_of(connection, place) is None else [f"{host.name}:{place}"]


def _helper_to_clean(connection: Connection, node: int, token: str, known: bool) -> _Again | _Passing:
    """Return a helper beside the run's directory, or one without a file: the disk is full and the directory gone."""
    try:
        return _Again(connection, node, token)
    except NoRoom:
        if known:
            raise
        return _Passing(connection, node, token)


def clean(host: Host, token: str, node: int) -> str:
    """End the run's processes on a host and remove its directory there, and return a description.

    Where the directory has gone a new one is made for the duration of the look, if the disk has room: its processes may
    still be there. Raises PlatformError, also for a process without the run's identity that works there: its owner is
    unknown.
    """
    place = place_of(host.directory, token, node)
    connection = Connection(host)
    try:
        known = marker_of(connection, place) is not None
        helper = _helper_to_clean(connection, node, token, known)
    except BaseException:
        connection.close()
        raise
    with contextlib.closing(helper):
        ended = helper.end_run()
        left = [f"{process.identity}: {why}" for process, why in ended.remaining]
        left += [f"{process}: it is not known to be the run's; if it is, end it" for process in helper.standing(place)]
        if left:
            raise PlatformError(f"{host}: processes of the run are left: {'; '.join(left)}")
        helper.remove(place)
    removed = "removed its directory" if known else "its directory had gone"
    if ended.ended:
        return f"{removed}, ended {len(ended.ended)} processes"
    return removed if known else "nothing of the run was left"
