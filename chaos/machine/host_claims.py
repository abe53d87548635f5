"""Resources of this host that one process has claimed and no other process gets, whichever user it runs as.

A claim is a name in the kernel's abstract namespace of Unix sockets: bound, never listened on, without a file whose
owner or mode would matter. It is released when its holder ends, however it ends. The namespace belongs to a network
namespace, as ports do. A container with a network of its own shares processors with the host all the same, and does not
see the host's claims.
"""

from __future__ import annotations

import errno
import socket

HOST = "chaos-lease"
"""The namespace of all harnesses of a host."""


class Claims:
    """Claims in one namespace. ``namespace`` separates those of a test from those of the host."""

    def __init__(self, namespace: str = HOST) -> None:
        self._namespace = namespace

    def claim(self, name: str) -> socket.socket | None:
        """Claim a name until the returned socket is closed; return None where another holder has it.

        Raises OSError where the kernel has no abstract names.
        """
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            holder.bind(f"\0{self._namespace}/{name}")
        except OSError as error:
            holder.close()
            if error.errno == errno.EADDRINUSE:
                return None
            raise
        return holder
