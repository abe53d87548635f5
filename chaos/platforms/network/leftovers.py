"""Leftovers of a run's network that are found without its router: in a process's namespace, and in this host's own.

This host's own namespace must never have any: links and rules are made in namespaces that end with their processes.
"""

from __future__ import annotations

import ipaddress
import re
import socket

from chaos.base.strict_json import parse
from chaos.machine.linux.net.ifb_delay import devices
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.net.netfilter import DEVICE, IPV4, tables
from chaos.machine.linux.net.rules import Rule, Rules
from chaos.machine.remote.network import devices_of, tables_of
from chaos.platforms.network.addressing import NETWORK

LINK = re.compile(r"(node|relay)\d+")
"""Names of a router's links to its nodes, and of the devices of its relays."""


class _Here:
    """The network namespace of this process."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket in it."""
        return socket.socket(family, kind, protocol)


def leftovers_here(token: str) -> list[str]:
    """Return what this process's own network has of a run's, in words.

    Raises PlatformError or OSError when unreadable.
    """
    leftovers = [f"link {name}" for _, name in socket.if_nameindex() if LINK.fullmatch(name)]
    leftovers += [f"rule: {_rule_in_words(rule)}" for rule in Rules(_Here()).listed() if _is_of_nodes(rule)]
    laid = [name for family in (IPV4, DEVICE) for name in tables(tables_of(token), family)]
    leftovers += [f"table {name} of the packet filter" for name in laid]
    return leftovers + [f"link {name}, in which packets were to wait" for name in devices(devices_of(token))]


def shown_in(namespace: Namespace) -> list[str]:
    """Return a namespace's links, the rules by which packets vanish there, and its queueing disciplines, in words.

    Raises PlatformError, OSError or ValueError where they cannot be read.
    """
    links = [link["ifname"] for link in _listed(namespace, "ip", "-j", "link", "show") if link["ifname"] != "lo"]
    limits = [
        limit for limit in _listed(namespace, "tc", "-j", "qdisc", "show") if limit.get("kind") in ("tbf", "netem")
    ]
    return [
        *(f"link {name}" for name in links),
        *(f"rule: {_rule_in_words(rule)}" for rule in Rules(namespace).listed()),
        *(f"{limit['kind']} on {limit['dev']}" for limit in limits),
    ]


def _rule_in_words(rule: Rule) -> str:
    return f"what comes from {rule.source} for {rule.target} vanishes"


def _is_of_nodes(rule: Rule) -> bool:
    return all(ipaddress.IPv4Address(address) in NETWORK for address in (rule.source, rule.target))


def _listed(namespace: Namespace, *command: str) -> list[dict[str, str]]:
    listed = parse(namespace.do(*command))
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
