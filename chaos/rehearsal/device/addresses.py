"""The addresses that stand-ins of a job on several nodes may listen on: numbers of a private network, and no others."""

from __future__ import annotations

import ipaddress


def why_open(address: str) -> str | None:
    """Return why no stand-in of a rehearsal may listen on a node's ``address``; None where it may.

    Numbers of private networks are those of the IANA registries of special-purpose addresses (RFC 1918, RFC 4193, …). A
    name is refused: others decide what it resolves to, and it may change while a run goes on.
    """
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return f"{address} is a name, not a number"
    if number.is_unspecified or number.is_multicast:
        return f"{address} is not one node's own"
    return None if number.is_private or number.is_loopback else f"{address} is public"
