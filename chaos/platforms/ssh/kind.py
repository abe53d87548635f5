"""The platform ``ssh``, and ``ssh-networks``, on which faults may change the network of the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.plan.platform_traits import PlatformTraits
from chaos.platforms.kind import Complaint, Inventory, PlatformKind
from chaos.platforms.remote_requirements import MET_THERE, ONE_MACHINE
from chaos.platforms.ssh.probe import ssh
from chaos.platforms.surfaces import NETWORK
from chaos.platforms.unsupported import without_names
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.ssh import Ssh

if TYPE_CHECKING:
    from chaos.platforms.ssh.networks import SshNetworksPlatform
    from chaos.platforms.ssh.platform import SshPlatform

NETWORKS_NAME = "ssh-networks"
_TOOLS = "the vendor's tools on the hosts"


def _platform() -> SshPlatform:
    from chaos.platforms.ssh.platform import SshPlatform

    return SshPlatform()


def _networks() -> SshNetworksPlatform:
    from chaos.platforms.ssh.networks import SshNetworksPlatform

    return SshNetworksPlatform()


def _problems(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    from chaos.platforms.ssh.problems import host_problems

    return host_problems(scenario, directory)


def _network_problems(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    from chaos.platforms.ssh.problems import network_problems

    return network_problems(scenario, directory)


def _by_inventory(path: Path) -> Inventory:
    from chaos.platforms.ssh.inventory import read_inventory

    return Inventory(Ssh(inventory=str(path.resolve())), len(read_inventory(path, user="", python="")))


def _caller_access(arguments: Mapping[str, Any], inventory: Path | None) -> Mapping[str, Any]:
    from chaos.platforms.ssh.caller_access import with_callers_inventory

    return with_callers_inventory(arguments, inventory)


KIND = PlatformKind(
    name="ssh",
    make=_platform,
    order=30,
    settings="ssh",
    network=NETWORKS_NAME,
    traits=PlatformTraits(own_files=True),
    carries=frozenset({"process", "agent", "host", "device"}),
    unsupported=without_names("the resolvers of a host are those of all that runs on it, not of the job alone"),
    shows=frozenset({"host"}),
    needs=("ssh",),
    # No need of this machine's; the plan says so in these words.
    meets={**MET_THERE, "hccn_tool": _TOOLS, "root": "the users who log in to the hosts"},
    probes={"ssh": ssh},
    problems=_problems,
    by_inventory=_by_inventory,
    own_memory=ONE_MACHINE,
    own_environment=True,
    elsewhere=True,
    caller_access=_caller_access,
    example={"inventory": "hosts.yaml"},
)

NETWORKS = replace(
    KIND,
    name=NETWORKS_NAME,
    make=_networks,
    order=31,
    network=None,
    carries=KIND.carries | {NETWORK},
    shows=frozenset(),
    meets={
        **KIND.meets,
        "tbf": "the packet filter of the hosts (nftables)",
        "impairment": "the kernels of the hosts: loss by their packet filter (nftables), delay by their netem, and a "
        "host whose kernel has none is refused before the job is started",
        "connection-reset": "the kernels of the hosts (sock_diag)",
    },
    probes={},
    problems=_network_problems,
    by_inventory=None,
)
