"""The address on which pages are served, and the names by which a browser may call it."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any

LOOPBACK = "127.0.0.1"
"""The address on which pages are served unless another is named."""

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.%]+\]|[^\s:\[\]/@]+)(?::(?P<port>\d{1,5}))?")
_HTTP = 80
_LOCALHOST = ("127.0.0.1", "::1")


class AddressUnknown(ValueError):
    """The name has no address."""


@dataclass(frozen=True)
class Address:
    """An address to bind. ``name`` is the part of a URL that leads there, ``names`` are all that may stand in it."""

    family: socket.AddressFamily
    bound: tuple[Any, ...]
    name: str
    names: frozenset[str]
    loopback: bool
    every: bool
    """Every address of the machine is bound. A literal address may then stand in a URL."""

    @property
    def ip(self) -> str:
        """The address as text."""
        return str(self.bound[0])

    def admits(self, header: str, port: int) -> bool:
        """Return whether a request with this Host header was meant for this address.

        A page of another site can make its own name resolve to this address (DNS rebinding): its name stays in the
        header, and a literal address never needs to be resolved.
        """
        match = _HOST.fullmatch(header.strip().lower())
        if match is None or int(match["port"] or _HTTP) != port:
            return False
        return match["name"] in self.names or (self.every and _is_literal(match["name"]))


def address_of(host: str | None) -> Address:
    """Return the address of a host by its name, or loopback without one. Raises AddressUnknown."""
    named = LOOPBACK if host is None else host.strip("[]")
    try:
        family, _, _, _, bound = socket.getaddrinfo(named, 0, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise AddressUnknown(f"{named!r} has no address: {getattr(error, 'strerror', None) or error}") from error
    ip = ipaddress.ip_address(str(bound[0]).partition("%")[0])
    names = {_in_url(str(bound[0])), _in_url(named)} | ({"localhost"} if str(ip) in _LOCALHOST else set())
    if ip.is_unspecified:
        names |= {"localhost", socket.gethostname()}
    in_url = socket.gethostname() if ip.is_unspecified else named
    allowed = frozenset(name.lower() for name in names)
    return Address(family, tuple(bound), _in_url(in_url), allowed, ip.is_loopback, ip.is_unspecified)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_literal(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
