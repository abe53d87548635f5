"""Whether this machine reaches a cluster, and whether the cluster has Chaos Mesh."""

from __future__ import annotations

from importlib import util

from chaos.machine.probe import Machine, Probe
from chaos.scenario.models.kubernetes import Kubernetes

_MESH_SECONDS = 10.0


def kubernetes(machine: Machine) -> Probe:
    """Return whether a configuration names a cluster; the cluster is not called."""
    if util.find_spec("kubernetes") is None:
        return Probe("kubernetes", False, "its client is not installed", "pip install 'chaos-ascend[kubernetes]'")
    from chaos.machine.job.protocol import PlatformError
    from chaos.platforms.kubernetes.client.api import connect

    try:
        server = connect(_context(machine)).client.configuration.host
    except PlatformError as error:
        return Probe("kubernetes", False, str(error), "set KUBECONFIG to a file that has the cluster's context")
    return Probe("kubernetes", True, f"the client, for {server}")


def chaos_mesh(machine: Machine) -> Probe:
    """Return whether the API of Chaos Mesh is there, in the cluster that a scenario names."""
    if not (client := kubernetes(machine)).ok:
        return Probe("chaos-mesh", False, client.seen, client.advice)
    from chaos.machine.job.protocol import PlatformError
    from chaos.platforms.kubernetes.client.api import ApiError, connect
    from chaos.platforms.kubernetes.resources import DNS_CHAOS, IO_CHAOS, NETWORK_CHAOS

    advice = "install Chaos Mesh there (https://chaos-mesh.org), or name its cluster by cluster.kubernetes.context"
    try:
        api = connect(_context(machine))
        listed = api.request("get", f"/apis/{NETWORK_CHAOS.api_version}", seconds=_MESH_SECONDS)
    except ApiError as error:
        reason = "the cluster does not have its API" if error.status == 404 else str(error)
        return Probe("chaos-mesh", False, reason, advice)
    except PlatformError as error:
        return Probe("chaos-mesh", False, str(error), advice)
    kinds = {resource.get("kind") for resource in listed.get("resources") or ()}
    if missing := sorted({NETWORK_CHAOS.kind, IO_CHAOS.kind, DNS_CHAOS.kind} - kinds):
        return Probe("chaos-mesh", False, f"its API has no {', '.join(missing)}", advice)
    return Probe("chaos-mesh", True, f"{NETWORK_CHAOS.api_version} in {api.client.configuration.host}")


def _context(machine: Machine) -> str | None:
    """Return the context of the kubeconfig that the scenario names; None for the current one."""
    return machine.settings.context if isinstance(machine.settings, Kubernetes) else None
