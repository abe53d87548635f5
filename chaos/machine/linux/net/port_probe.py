"""Whether TCP ports answer as seen from a network namespace: by a connection or a refusal, never by silence."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack

from chaos.machine.linux.net.echo import OpensSockets

_ANSWERS = (0, errno.ECONNREFUSED)


def answering_ends(
    namespace: OpensSockets, ends: Sequence[tuple[str, int]], *, wait: float, source: str = ""
) -> list[tuple[str, int]]:
    """Return the ends, each an address and a port, that answer within ``wait`` seconds. No data is sent to them.

    ``source`` is the address that the attempts come from, where the namespace has several. Raises PlatformError where
    the namespace has gone, OSError.
    """
    answering = []
    with ExitStack() as stack:
        pending: dict[int, tuple[socket.socket, tuple[str, int]]] = {}
        answers = select.poll()  # select() takes no descriptor above 1,023
        for end in ends:
            caller = stack.enter_context(namespace.socket(socket.AF_INET, socket.SOCK_STREAM))
            caller.setblocking(False)
            if source:
                caller.bind((source, 0))
            begun = caller.connect_ex(end)
            if begun not in (*_ANSWERS, errno.EINPROGRESS):
                raise OSError(begun, f"{end[0]}:{end[1]}: {os.strerror(begun)}")
            pending[caller.fileno()] = caller, end
            answers.register(caller, select.POLLOUT)
        until = time.monotonic() + wait
        while pending and (left := until - time.monotonic()) > 0:
            for descriptor, _ in answers.poll(left * 1000):
                answers.unregister(descriptor)
                caller, end = pending.pop(descriptor)
                if caller.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in _ANSWERS:
                    answering.append(end)
    return answering
