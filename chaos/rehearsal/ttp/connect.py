"""A processor's search for the controller and its registration there."""

from __future__ import annotations

import socket
import time
from typing import Callable

from chaos.base.growth import in_words
from chaos.rehearsal.ttp.trust import Trust, UnprovenCaller
from chaos.rehearsal.ttp.wire import Link

_POLL_SECONDS = 0.05


def register(
    rank: int,
    address: tuple[str, int],
    *,
    run: str,
    secret: bytes,
    seconds: float,
    answer_seconds: float,
    wait: Callable[[float], object],
) -> tuple[Link, bool]:
    """Register ``rank`` with the controller at ``address``.

    Returns the connection, and whether this process replaces a lost one. ``wait`` waits some seconds between two tries.
    Raises ConnectionError when there is no controller within ``seconds``, when it does not answer within
    ``answer_seconds``, and when it is none of this run.
    """
    host, port = address
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection(address, timeout=seconds)
        except OSError as error:
            if time.monotonic() > deadline:
                raise ConnectionError(
                    f"rank {rank}: no controller at {host}:{port} within {in_words(seconds)}: {error}; is the process "
                    "alive that hosts it, and does MS_TFT_PORT name its port?"
                ) from error
            wait(_POLL_SECONDS)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(answer_seconds)
        link, asked_at = Link(connection), time.monotonic()
        unproven = False
        try:
            answer = Trust(run, secret).register(link, rank)
        except UnprovenCaller:
            answer, unproven = None, True
        if answer is None:
            link.close()
            if not unproven and time.monotonic() - asked_at >= answer_seconds:
                raise ConnectionError(
                    f"rank {rank}: the controller at {host}:{port} took the connection and did not answer for "
                    f"{in_words(answer_seconds)}; see the log of the process that hosts it"
                )
            raise ConnectionError(
                f"rank {rank}: {host}:{port} is not the controller of this run; another program listens on that port, "
                "so end it or choose another MS_TFT_PORT"
            )
        connection.settimeout(None)
        return link, bool(answer.get("reboot"))
