"""In torchrun on one of several nodes: the ranks of gloo talk over the interface that has the node's address.

gloo would look up the name of the host, which may lead to another interface, or to that of another node. A job kind
names this module among its extensions. A user's own GLOO_SOCKET_IFNAME stays.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from chaos.agent.start import Agent

VARIABLE = "GLOO_SOCKET_IFNAME"

_SIOCGIFADDR = 0x8915


def install(agent: Agent) -> None:
    """Set the variable for the ranks that this launcher starts."""
    address = agent.configuration.address
    if agent.place.rank is None and agent.place.role == "other" and address is not None and VARIABLE not in os.environ:
        name = interface_of(address)
        if name is not None:
            os.environ[VARIABLE] = name


def interface_of(address: str) -> str | None:
    """Return the name of the interface with this IPv4 address; None where none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                reply = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no IPv4 address
                continue
            if socket.inet_ntoa(reply[20:24]) == address:
                return name
    return None
