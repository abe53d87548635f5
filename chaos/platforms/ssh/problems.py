"""Problems of a scenario's hosts: a path in the scenario, a message and a hint. Only the inventory is read."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.plan.effect import effect_of
from chaos.platforms.ssh.hosts import hosts_in
from chaos.platforms.ssh.inventory import Host, key_problem
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.scenario import Scenario

_INVENTORY = "cluster.ssh.inventory"


def host_problems(scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the reasons why the hosts cannot be the job's nodes."""
    if scenario.cluster.ssh is None:
        advice = "--inventory FILE, or cluster: {ssh: {inventory: FILE}}"
        yield "cluster.platform", "the platform ssh needs to know its hosts", advice
        return
    try:
        hosts = hosts_in(scenario, directory)
    except ScenarioError as error:
        yield _INVENTORY, str(error), ""
        return
    if len(hosts) < scenario.cluster.nodes:
        message = f"{len(hosts)} hosts in the inventory, and the job has {scenario.cluster.nodes} nodes"
        yield "cluster.nodes", message, "name more hosts, or use fewer nodes"
    for number, host in enumerate(hosts[: scenario.cluster.nodes]):
        if (why := key_problem(host)) is not None:
            yield _INVENTORY, f"host {host.name}: {why}", ""
        each = scenario.cluster.ranks // scenario.cluster.nodes
        if host.devices is not None and len(host.devices) < each:
            message = f"host {host.name} has {len(host.devices)} devices, and node {number} has {each} ranks"
            yield "cluster.ranks", message, "name more devices in the inventory, or spread the ranks over more hosts"
        reboots = sorted({fault.kind for fault in scenario.faults if effect_of(fault.kind).reboots})
        if host.reboot is None and reboots:
            message = f"{reboots[0]}: the inventory says no command that reboots host {host.name}"
            yield _INVENTORY, message, "give it one, such as reboot: [sudo, reboot]"


def network_problems(scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the same problems, and the hosts whose network may not be changed."""
    problems = list(host_problems(scenario, directory))
    yield from problems
    if not any(key.startswith("cluster.") for key, *_ in problems):
        yield from _between_hosts(hosts_in(scenario, directory)[: scenario.cluster.nodes])


def _between_hosts(hosts: Sequence[Host]) -> Iterator[tuple[str, str, str]]:
    by_address: dict[str, str] = {}
    for host in hosts:
        if not host.network:
            message = f"the inventory does not let faults change the network of host {host.name}"
            hint = (
                "where they may, say network: true for it; docs/guides/ssh.md in the repository tells what that permits"
            )
            yield _INVENTORY, message, hint
        address, advice = host.data_address, "give each host the IPv4 number of its own on the job's network"
        try:
            number = ipaddress.IPv4Address(address)
        except ValueError:
            yield _INVENTORY, f"the data address {address} of host {host.name} is no IPv4 number", advice
            continue
        if number.is_loopback or number.is_multicast or number.is_unspecified:
            yield _INVENTORY, f"the data address {address} of host {host.name} is no address between hosts", advice
        elif (other := by_address.setdefault(address, host.name)) != host.name:
            message = f"hosts {other} and {host.name} have one data address, {address}: they cannot be distinguished"
            yield _INVENTORY, message, advice
