"""Numbers and names in the network of a run on this host: of its nodes, and of the rules of a fault."""

from __future__ import annotations

import ipaddress
import zlib

NETWORK = ipaddress.IPv4Network("10.77.0.0/16")
"""The network of all addresses of a run's nodes."""
_ADDRESSES_PER_LINK = 4
MOST_NODES = 1 << 14


def address_of(node: int) -> str:
    """Return the address of a node, the same in every run: nothing outside the run's namespaces sees it."""
    return str(NETWORK[node * _ADDRESSES_PER_LINK + 2])


def gateway_of(node: int) -> str:
    """Return the router's own address on the link to a node."""
    return str(NETWORK[node * _ADDRESSES_PER_LINK + 1])


def node_at(address: str) -> int:
    """Return the node that has an address."""
    return (int(ipaddress.IPv4Address(address)) - int(NETWORK[0])) // _ADDRESSES_PER_LINK


def link_of(node: int) -> str:
    """Return the name of the router's interface to a node."""
    return f"node{node}"


def preference_of(fault: str) -> int:
    """Return the preference of a fault's rules; with their protocol it finds and removes them (ip-rule(8))."""
    return 1000 + zlib.crc32(fault.encode()) % 30000


def protocol_of(fault: str) -> int:
    """Return the protocol number that distinguishes a fault's rules from others with the same preference.

    Nobody has given the number a name.
    """
    return 200 + zlib.adler32(fault.encode()) % 50


def handle_of(fault: str) -> str:
    """Return the handle of a fault's queueing disciplines, which distinguishes them from other faults' (tc(8))."""
    return f"{1 + zlib.crc32(fault.encode()) % 0xFFFE:x}:"
