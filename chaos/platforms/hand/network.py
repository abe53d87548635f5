"""What the hand does to the network of its node: rules between the addresses of its run, and what shows of them.

A rule concerns what comes in for this node's own address from one other, and nothing else. Rules that a hand has laid
go with it, however its harness ends; only a hand that was killed leaves some, for another one to lift.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chaos.platforms.hand.netfilter import Counted, Rule, listed, make, remove, tables
from chaos.platforms.network.connected import connections
from chaos.platforms.network.echo import ask

_NAME = 12
"""Characters of a fault's mark in the name of its table."""
_NOBODY = ("192.0.2.1", "192.0.2.2")
"""Addresses that nobody has (RFC 5737), to try out rules with."""


class NetworkRequests:
    """The part of the hand that is about the network; arguments and results are JSON."""

    def __init__(self, run: str) -> None:
        self._tables = tables_of(run)
        self._laid: set[str] = set()

    def network_check(self, own: str, others: list[str]) -> None:
        """Refuse where rules about these addresses could not be laid, or would cut off the harness itself."""
        self._spare_harness(own, others)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind((own, 0))
        except OSError as error:
            raise ValueError(f"{own} is no address of this host: {error.strerror}") from error
        table = f"{self._tables}check"
        try:
            remove(table)
            make(table, [Rule(*_NOBODY), Rule(*_NOBODY, loss=1.0), Rule(*_NOBODY, rate=1000)])
            remove(table)
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
        except OSError as error:
            told = "the user who logs in must be root there" if isinstance(error, PermissionError) else error.strerror
            raise ValueError(f"rules of the network cannot be laid by user {os.geteuid()}: {told}") from error

    def lay(self, fault: str, rules: list[dict[str, Any]]) -> None:
        """Lay the rules of a fault, all at once. The same ones a second time change nothing."""
        wanted = [Rule(**one) for one in rules]
        for rule in wanted:
            self._spare_harness(rule.target, [rule.source])
        table = self._table(fault)
        try:
            make(table, wanted)
        except FileExistsError:
            if [one.rule for one in listed(table)] != wanted:
                raise ValueError(f"fault {fault} has laid other rules here") from None
        self._laid.add(table)

    def laid(self, fault: str | None) -> list[dict[str, Any]]:
        """The rules of a fault as the kernel has them, with its counters; without a fault those of the whole run."""
        names = tables(self._tables) if fault is None else [self._table(fault)]
        return [_told(one) for name in names for one in listed(name)]

    def lift(self, fault: str | None) -> int:
        """Take away the rules of a fault, and nobody else's; without a fault those of the whole run. How many."""
        names = tables(self._tables) if fault is None else [self._table(fault)]
        lifted = 0
        for name in names:
            there = len(listed(name))
            lifted += there if remove(name) else 0
            self._laid.discard(name)
        return lifted

    def look(self, fault: str, addresses: list[str], count: int, wait: float) -> dict[str, Any]:
        """What shows of a fault here: connections with these addresses, echoes to them, and afterwards the rules."""
        found = connections("self", addresses)
        echoes = self.echo(addresses, count, 0.0, wait)
        return {"connections": found, "echoes": echoes, "own": self.laid(fault), "all": self.laid(None)}

    def echo(self, addresses: list[str], count: int, interval: float, wait: float) -> dict[str, Any]:
        """What comes of echo requests from here (:func:`chaos.platforms.network.echo.ask`)."""
        return asdict(ask(_Own(), addresses, count=count, interval=interval, wait=wait))

    def close(self) -> None:
        """Lift what this hand has laid."""
        for table in sorted(self._laid):
            with contextlib.suppress(OSError):
                remove(table)

    def _table(self, fault: str) -> str:
        return f"{self._tables}{hashlib.sha256(fault.encode()).hexdigest()[:_NAME]}"

    @staticmethod
    def _spare_harness(own: str, others: Sequence[str]) -> None:
        """sshd says from where its caller comes (sshd(8), SSH_CONNECTION)."""
        caller = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
        if caller and caller in (own, *others):
            raise ValueError(
                f"the harness reaches this host from {caller}, which is a data address of the run: it would cut off "
                "itself; let it run on a host of its own, or give the hosts other data addresses"
            )


def tables_of(run: str) -> str:
    """How the names of a run's tables begin."""
    return f"chaos_{run[-16:]}_"


class _Own:
    """The network namespace that the hand is in."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket in it."""
        return socket.socket(family, kind, protocol)


def _told(one: Counted) -> dict[str, Any]:
    return {"rule": asdict(one.rule), "came": list(one.came), "vanished": list(one.vanished)}
