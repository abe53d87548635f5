"""The platform ``kubernetes``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kind import Complaint, PlatformKind
from chaos.platforms.kubernetes.caller_access import with_callers_kubeconfig
from chaos.platforms.kubernetes.probe import chaos_mesh, kubernetes
from chaos.platforms.remote_requirements import MET_THERE, ONE_MACHINE
from chaos.platforms.surfaces import CLUSTER
from chaos.platforms.unsupported import without_names
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.platforms.kubernetes.platform import KubernetesPlatform

_ACTS_ON_PODS = frozenset({"pod", CLUSTER, "mesh"})


def _platform() -> KubernetesPlatform:
    from chaos.platforms.kubernetes.platform import KubernetesPlatform

    return KubernetesPlatform()


def _problems(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    """Yield the problems of the user's own manifest. The cluster is not asked."""
    cluster = scenario.cluster.kubernetes
    if cluster is None or cluster.manifest is None:
        return
    from chaos.platforms.kubernetes.check.check import Demands
    from chaos.platforms.kubernetes.own_manifest import own_problems

    demands = Demands(
        scenario.job.strategies or None, scenario.cluster.nodes, scenario.cluster.ranks, cluster.namespace
    )
    yield from own_problems(directory / cluster.manifest, cluster, demands)


def _inputs(scenario: Scenario, directory: Path) -> Mapping[str, str]:
    """Return the user's own manifest, which the job's pods are made from."""
    settings = scenario.cluster.kubernetes
    if settings is None or settings.manifest is None:
        return {}
    try:
        text = (directory / settings.manifest).read_bytes()
    except OSError as error:
        raise PlatformError(f"cluster.kubernetes.manifest cannot be read: {error}") from error
    return {"manifest": hashlib.sha256(text).hexdigest()}


def _changeable(scenario: Scenario) -> tuple[str, ...]:
    return scenario.cluster.kubernetes.nodes if scenario.cluster.kubernetes is not None else ()


KIND = PlatformKind(
    name="kubernetes",
    make=_platform,
    order=40,
    settings="kubernetes",
    needs_settings=True,
    carries=frozenset({"process", "agent", "files"}) | _ACTS_ON_PODS,
    unsupported=without_names("in a cluster Chaos Mesh takes names from one pod"),
    shows=_ACTS_ON_PODS,
    changeable=_changeable,
    needs=("kubernetes",),
    meets=MET_THERE,
    probes={"kubernetes": kubernetes, "chaos-mesh": chaos_mesh},
    problems=_problems,
    inputs=_inputs,
    own_memory=ONE_MACHINE,
    own_environment=True,
    caller_access=with_callers_kubeconfig,
    example={
        "namespace": "train",
        "image": "train:1",
        "python": "/usr/bin/python3",
        "volume": {"path": "/data", "host_path": "/data"},
        "nodes": ["node-a", "node-b"],
    },
)
