"""The network of a run, on a subnet of its own where the scenario lists some (``cluster.docker.subnets``).

The engine gives out each address once and refuses a network that overlaps with another of its networks. So the engine
decides between runs that want the same subnet at the same moment; nothing is locked here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.docker.engine import RUN_LABEL, engine_errors

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.networks import Network

_FOR_OTHERS = 3
"""Addresses of a subnet that no node gets: the network's, the router's, and the broadcast address."""

_OVERLAP = "overlap"
"""The engine's wording, in all its versions, for a subnet that another of its networks has."""


def make_network(client: DockerClient, name: str, token: str, subnets: Sequence[str]) -> Network:
    """Make the network of the run ``token``, on the first of ``subnets`` that is free; without any, the engine chooses.

    Raises PlatformError, also when none is free.
    """
    from docker.errors import APIError
    from docker.types import IPAMConfig, IPAMPool

    candidates: Sequence[str | None] = subnets or (None,)
    for subnet in candidates:
        pool = None if subnet is None else IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        with engine_errors("the run's network cannot be made"):
            try:
                return client.networks.create(
                    name, driver="bridge", internal=True, ipam=pool, labels={RUN_LABEL: token}
                )
            except APIError as error:
                if subnet is None or _OVERLAP not in str(error):
                    raise
    raise PlatformError(
        f"cluster.docker.subnets: other networks of the engine have all of {', '.join(subnets)}: name more, or wait "
        "for the end of other runs"
    )


def complaint(subnet: str, nodes: int) -> str | None:
    """Return why a subnet does not fit so many nodes; None when it fits."""
    try:
        network = ipaddress.IPv4Network(subnet)
    except ValueError as error:
        return f"{subnet!r} is no IPv4 subnet such as 10.99.1.0/24: {error}"
    if not network.is_private:
        return f"{subnet} has public addresses"
    if network.num_addresses - _FOR_OTHERS < nodes:
        return f"{subnet} has no addresses for {nodes} nodes"
    return None
