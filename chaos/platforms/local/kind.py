"""The platforms of this host: ``local``, and ``local-nodes`` with or without a network between the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.plan.platform_traits import PlatformTraits
from chaos.platforms.kind import PlatformKind
from chaos.platforms.surfaces import NETWORK
from chaos.platforms.unsupported import without_names

if TYPE_CHECKING:
    from chaos.machine.job.local import LocalPlatform
    from chaos.platforms.local.networks import LocalNetworksPlatform
    from chaos.platforms.local.nodes import LocalNodesPlatform

_NO_NAMES = without_names(
    "there a job gets addresses only, and its nodes have no resolver of their own that could be lost: nodes of "
    "local-networks are in network namespaces that reach no resolver, all others share this host's, which is never "
    "changed"
)
_OTHER_HOSTS = "it needs a platform with other hosts: --platform ssh"
_ON_NODES = frozenset({"process", "agent", "files", "mounts", "resources"})
NETWORKS_NAME = "local-networks"


def _local() -> LocalPlatform:
    from chaos.machine.job.local import LocalPlatform

    return LocalPlatform()


def _nodes() -> LocalNodesPlatform:
    from chaos.platforms.local.nodes import LocalNodesPlatform

    return LocalNodesPlatform()


def _networks() -> LocalNetworksPlatform:
    from chaos.platforms.local.networks import LocalNetworksPlatform

    return LocalNetworksPlatform()


def as_it_is(arguments: Mapping[str, Any], inventory: Path | None) -> Mapping[str, Any]:
    """Keep the arguments of a foreign undo step: its helpers are this host's own, and end with their harness."""
    del inventory
    return arguments


KIND = PlatformKind(
    name="local",
    make=_local,
    order=0,
    network=NETWORKS_NAME,
    traits=PlatformTraits(
        one_launcher=True,
        harness_machine=True,
        for_hosts="use nodes: 1, network: true for nodes on this host, or the platform ssh or kubernetes for hosts",
        for_machine=_OTHER_HOSTS,
    ),
    unsupported=_NO_NAMES,
    own_limits=True,
)

NODES = PlatformKind(
    name="local-nodes",
    make=_nodes,
    order=10,
    network=NETWORKS_NAME,
    traits=PlatformTraits(harness_machine=True, for_machine=_OTHER_HOSTS),
    carries=_ON_NODES,
    unsupported=_NO_NAMES,
    own_limits=True,
    caller_access=as_it_is,
)

NETWORKS = PlatformKind(
    name=NETWORKS_NAME,
    make=_networks,
    order=11,
    traits=PlatformTraits(harness_machine=True, for_machine=_OTHER_HOSTS),
    carries=_ON_NODES | {NETWORK},
    unsupported=_NO_NAMES,
    needs=("network-namespaces",),
    own_limits=True,
    in_kernel=True,
    caller_access=as_it_is,
)
