"""The helper's changes to the network of its node: rules between the addresses of its run, and their visible effects.

A rule concerns packets that come in for this node's own address from one other, and nothing else. Rules that a remote
helper has laid go with it, however its harness ends; only a killed helper leaves some, for another one to lift.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from chaos.machine.linux.net.connected import connections
from chaos.machine.linux.net.connections import refusal
from chaos.machine.linux.net.ifb_delay import delay_of, device_of, devices, hold, release, too_old
from chaos.machine.linux.net.netfilter import (
    DEVICE,
    IPV4,
    Rule,
    RuleCounter,
    add,
    list_rules,
    make,
    remove,
    tables,
    turn_over,
)
from chaos.machine.linux.net.ports import Ports
from chaos.machine.remote.connecting import ConnectionRequests

_NAME = 12
"""Characters of a fault's mark in the name of its table."""
_NOBODY = ("192.0.2.1", "192.0.2.2")
"""Addresses that nobody has (RFC 5737), for trial rules."""
_CHECK = "check"


class NetworkRequests(ConnectionRequests):
    """The part of the remote helper that handles the network; arguments and results are JSON."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self._tables = tables_of(run)
        self._devices = devices_of(run)
        self._laid: set[str] = set()

    def network_check(self, own_address: str, others: list[str], resetting: list[str], holding: list[str]) -> None:
        """Refuse where rules about these addresses could not be laid, or would cut off the harness itself.

        ``resetting`` and ``holding`` are the names of faults that need more than rules: reset connections, delayed
        packets.
        """
        self._spare_harness(own_address, others)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind((own_address, 0))
        except OSError as error:
            raise ValueError(f"{own_address} is no address of this host: {error.strerror}") from error
        table = f"{self._tables}{_CHECK}"
        try:
            remove(table)
            some = (Rule(*_NOBODY, loss=1.0), Rule(*_NOBODY, rate=1000), Rule(*_NOBODY, ports=Ports(1, 1)))
            make(table, [Rule(*_NOBODY), *some])
            remove(table)
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
        except OSError as error:
            reason = "the user who logs in must be root there" if isinstance(error, PermissionError) else error.strerror
            raise ValueError(f"rules of the network cannot be laid by user {os.geteuid()}: {reason}") from error
        if resetting and (why := refusal()) is not None:
            advice = "its kernel must be built with CONFIG_INET_DIAG_DESTROY"
            raise ValueError(
                f"{', '.join(resetting)} cannot be made there, since no connection can be reset: {why}; {advice}"
            )
        if holding:
            self._check_holding(own_address, holding)

    def lay(self, fault: str, rules: list[dict[str, Any]]) -> None:
        """Lay rules of a fault, all at once. Rules that it has laid here already stay as they are."""
        new = [rule_of(rule) for rule in rules]
        for rule in new:
            self._spare_harness(rule.target, [rule.source])
        table = self._table(fault)
        waits = any(rule.delay is not None for rule in new)
        try:
            if waits:
                self._hold(fault, table, new)
            else:
                make(table, new)
        except FileExistsError:
            there = [counter.rule for counter in self._of(table)]
            more = [rule for rule in new if rule not in there]
            if more and waits:
                raise ValueError(f"fault {fault} has laid other rules here") from None
            if more:
                add(table, more)
        self._laid.add(table)

    def list_rules(self, fault: str | None) -> list[dict[str, Any]]:
        """Return the rules of a fault as the kernel lists them, with its counters.

        Without a fault those of the whole run.
        """
        return [_counter_fields(counter) for table in self._all(fault) for counter in self._of(table)]

    def devices(self) -> list[str]:
        """Return the devices in which packets of the run are to wait."""
        return devices(self._devices)

    def lift(self, fault: str | None) -> int:
        """Remove the rules of a fault, and no other rules, and return their number.

        Without a fault those of the whole run.
        """
        lifted = sum(self._lift(table) for table in self._all(fault))
        # A remote helper that was killed between the two may have left a device to which nothing is redirected.
        names = self.devices() if fault is None else [self._device(self._table(fault))]
        for name in names:
            release(name)
        return lifted

    def look(self, fault: str, addresses: list[str], count: int, wait: float) -> dict[str, Any]:
        """Return a fault's effects here: connections with these addresses, echoes to them, and afterwards the rules."""
        count_of_connections = connections("self", addresses)
        echoes = self.echo(addresses, count, 0.0, wait)
        fault_rules, of_run = self.list_rules(fault), self.list_rules(None)
        return {"connections": count_of_connections, "echoes": echoes, "own": fault_rules, "all": of_run}

    def look_at_port(self, own_address: str, port: int, others: list[str]) -> int:
        """Return the number of connections that others have with a TCP port of this node."""
        return connections("self", others, port, source=own_address)

    def close(self) -> None:
        """Lift the rules that this helper has laid."""
        for table in sorted(self._laid):
            with contextlib.suppress(OSError):
                self._lift(table)

    # Packets that wait in a device.

    def _hold(self, fault: str, table: str, rules: Sequence[Rule]) -> None:
        """Redirect these rules' packets to a device of the fault's own. Raises FileExistsError, ValueError."""
        times, targets = {(rule.delay, rule.jitter) for rule in rules}, {rule.target for rule in rules}
        if len(times) != 1 or len(targets) != 1:
            raise ValueError(f"fault {fault}: packets for one address wait here, all of them as long: {rules}")
        ((delay, jitter),), (address,) = times, targets
        assert delay is not None
        for other in tables(self._tables, DEVICE):
            if other != table:
                raise ValueError(f"what comes in here is held up by another fault already; fault {fault} was not made")
        came_in_at = device_of(address)
        if came_in_at is None:
            raise ValueError(f"no device of this host has the address {address}")
        index = hold(self._device(table), delay, jitter)
        try:
            turn_over(table, came_in_at, index, rules)
        except BaseException:
            release(self._device(table))
            raise

    def _check_holding(self, address: str, faults: list[str]) -> None:
        """Refuse where packets cannot be made to wait, for the reason that the kernel gives."""
        table, why = f"{self._tables}{_CHECK}", too_old(os.uname().release)
        try:
            if why is None:
                self._lift(table)
                self._hold(_CHECK, table, [Rule(_NOBODY[0], address, delay=1.0, jitter=1.0)])
                self._lift(table)
        except OSError as error:
            why = f"{error.strerror}"
        if why is not None:
            raise ValueError(f"{', '.join(faults)} cannot be made there, since packets cannot be held up: {why}")

    # The tables of the run.

    def _all(self, fault: str | None) -> list[str]:
        if fault is not None:
            return [self._table(fault)]
        return sorted({*tables(self._tables), *tables(self._tables, DEVICE)})

    def _of(self, table: str) -> Iterator[RuleCounter]:
        yield from list_rules(table)
        turned_over = list_rules(table, DEVICE)
        waits = delay_of(self._device(table)) if turned_over else None
        for counter in turned_over:
            delay, jitter, passed = (0.0, 0.0, 0) if waits is None else (waits.delay, waits.jitter, waits.passed)
            rule = replace(counter.rule, delay=delay, jitter=jitter)
            yield replace(counter, rule=rule, vanished=(0, 0), passed=passed)

    def _lift(self, table: str) -> int:
        """Remove the redirection first, then the device, and return the number of rules."""
        lifted = 0
        for family in (DEVICE, IPV4):
            there = len(list_rules(table, family))
            lifted += there if remove(table, family) else 0
        release(self._device(table))
        self._laid.discard(table)
        return lifted

    def _table(self, fault: str) -> str:
        return f"{self._tables}{hashlib.sha256(fault.encode()).hexdigest()[:_NAME]}"

    def _device(self, table: str) -> str:
        """Return the device's name. Such a name has 15 characters at most."""
        return f"{self._devices}{hashlib.sha256(table.encode()).hexdigest()[:5]}"

    @staticmethod
    def _spare_harness(own_address: str, others: Sequence[str]) -> None:
        """Refuse rules that would cut off the harness: sshd names its caller's address (sshd(8), SSH_CONNECTION)."""
        caller = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
        if caller and caller in (own_address, *others):
            raise ValueError(
                f"the harness reaches this host from {caller}, which is a data address of the run: it would cut off "
                "itself; let it run on a host of its own, or give the hosts other data addresses"
            )


def tables_of(run: str) -> str:
    """Return the beginning of the names of a run's tables."""
    return f"chaos_{run[-16:]}_"


def devices_of(run: str) -> str:
    """Return the beginning of the names of a run's devices, in which packets wait."""
    return f"ch{run[-8:]}"


def rule_of(fields: Mapping[str, Any]) -> Rule:
    """Return a rule from its JSON form."""
    return Rule(**{**fields, "ports": Ports(**fields["ports"])})


def _counter_fields(counter: RuleCounter) -> dict[str, Any]:
    return {
        "rule": asdict(counter.rule),
        "came": list(counter.came),
        "vanished": list(counter.vanished),
        "passed": counter.passed,
    }
