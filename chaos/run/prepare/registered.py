"""The registered objects of a scenario's names: its job's kind, its platforms, the kinds of its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.faults.kind import FaultKind
from chaos.faults.registered import fault_kind
from chaos.jobs.kind import JobKind, job_kind
from chaos.platforms.kind import PlatformKind, platform_kind
from chaos.platforms.surfaces import NETWORK
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Registered:
    """Everything that a scenario names, looked up once.

    Args:
        job: the kind of its job.
        named: the platform that it names.
        platform: the platform that its job is started on. Where the scenario or a fault asks for a network between
            nodes, its nodes have such a network.
        kinds: the kinds of its faults by their names.
    """

    job: JobKind
    named: PlatformKind
    platform: PlatformKind
    kinds: Mapping[str, FaultKind]


def look_up_names(scenario: Scenario) -> Registered:
    """Look up the names of a scenario. Raises RegistryError when a kind cannot be loaded."""
    kinds = {name: fault_kind(name) for name in sorted({fault.kind for fault in scenario.faults})}
    named = platform_kind(scenario.cluster.platform)
    needs_network = scenario.cluster.network or any(kind.surface == NETWORK for kind in kinds.values())
    platform = platform_kind(named.network) if needs_network and named.network is not None else named
    return Registered(job_kind(scenario.job.kind), named, platform, kinds)
