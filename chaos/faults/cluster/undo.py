"""Undoing faults of a cluster's objects: nodes are released, and public faults are reported as recovered."""

from __future__ import annotations

from chaos.base.wait import DeadlineExpired, wait_for
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.cluster.in_cluster import RECOVER_PUBLIC_FAULT, RELEASE_NODE
from chaos.faults.cluster.on_mesh import DELETE_MESH
from chaos.faults.cluster.public_fault import described
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes.fault_message import forget, is_listed, listed, recover, recover_anew
from chaos.platforms.kubernetes.names import BEFORE_ANNOTATION, HELD_ANNOTATION, HELD_FOR_ANNOTATION
from chaos.platforms.kubernetes.platform import cluster_of
from chaos.platforms.kubernetes.public_fault import fault_id
from chaos.platforms.kubernetes.resources import DNS_CHAOS, IO_CHAOS, NETWORK_CHAOS
from chaos.platforms.kubernetes.run_client import Release, RunClient

__all__ = [
    "DELETE_MESH",
    "RECOVER_PUBLIC_FAULT",
    "RELEASE_NODE",
    "delete_mesh_object",
    "recover_public_fault",
    "release_node",
]

READY_SECONDS = 60.0
RECOVERED_SECONDS = 60.0

_BY_HAND = (
    f"by hand: look what its annotation {BEFORE_ANNOTATION} says that it was before, make it so, and remove it, "
    f"{HELD_ANNOTATION} and {HELD_FOR_ANNOTATION}"
)


def release_node(step: UndoStep, context: UndoContext) -> str:
    """Put back a fault's changes to a node.

    Where the fault has written that the node is not ready, the node's kubelet has to say that it is; the node stays
    marked with the fault until then. Arguments: kubeconfig, settings, host.
    """
    host = _text(step, "host")
    try:
        _, run_client = cluster_of(step.arguments, context.token)
        became = wait_for(
            "ready", lambda: _released(run_client, host, step.fault), seconds=READY_SECONDS, clock=context.clock
        )
    except DeadlineExpired as expired:
        raise CannotUndo(
            f"node {host} was released, but its kubelet has not reported ready for {expired.seconds:g} s, so it stays "
            "marked with this run: look at the kubelet there, and run chaos heal again; for a node that does not come "
            f"back {_BY_HAND}"
        ) from expired
    except (PlatformError, ValueError) as error:
        raise CannotUndo(f"node {host} may still be held: {error}; {_BY_HAND}") from error
    return f"released node {host}" if became == "released" else f"node {host} is not held by this run for this fault"


def recover_public_fault(step: UndoStep, context: UndoContext) -> str:
    """Send ClusterD the message that a fault has recovered, and wait until ClusterD no longer lists it.

    Where the message of the occurrence is gone, ClusterD is asked: every fault that it still lists is reported as
    recovered too. Arguments: kubeconfig, settings, host, fault, message (its fields of the fault; old steps have none).
    """
    host, fault = _text(step, "host"), _text(step, "fault")
    now = context.clock.wall() // 1_000_000
    try:
        _, run_client = cluster_of(step.arguments, context.token)
        identity = recover(run_client, fault, host, now)
        if identity is None:
            identity = fault_id(run_client.run, fault)
            held = listed(run_client.api, host, identity)
            if held is None:
                return f"no message about fault {fault} is there, and ClusterD lists no fault {identity} of node {host}"
            recover_anew(run_client, fault, host, held, step.arguments.get("message") or described({}), now)
        _wait_recovered(run_client, host, identity, context)
        forget(run_client, fault, host)
    except (PlatformError, ValueError, KeyError) as error:
        raise CannotUndo(f"ClusterD may still hold fault {fault} of node {host}: {error}") from error
    return f"ClusterD was told that fault {identity} has recovered, and no longer lists it"


def delete_mesh_object(step: UndoStep, context: UndoContext) -> str:
    """Delete an object of Chaos Mesh, and wait until it has gone: it goes when the fault has been removed.

    Arguments: kubeconfig, settings, kind, name.
    """
    kind, name = _text(step, "kind"), _text(step, "name")
    resource = next((candidate for candidate in (NETWORK_CHAOS, IO_CHAOS, DNS_CHAOS) if candidate.kind == kind), None)
    if resource is None:
        raise CannotUndo(f"step {step.id} names a {kind}, which is nothing of Chaos Mesh's")
    try:
        _, run_client = cluster_of(step.arguments, context.token)
        stored = run_client.find(resource, name)
        if stored is None:
            return f"there is no {kind} {name}"
        run_client.delete(stored)
        wait_for(
            "taken back",
            lambda: run_client.find(resource, name) is None,
            seconds=RECOVERED_SECONDS,
            clock=context.clock,
        )
    except DeadlineExpired as expired:
        raise CannotUndo(
            f"{kind} {name} is being deleted, and is still there after {expired.seconds:g} s: Chaos Mesh has not taken "
            f"the fault back; look at it with kubectl describe {resource.plural} {name}"
        ) from expired
    except (PlatformError, ValueError) as error:
        raise CannotUndo(f"{kind} {name} may still be there: {error}") from error
    return f"deleted {kind} {name}, and Chaos Mesh has taken it back"


def _wait_recovered(run_client: RunClient, host: str, identity: str, context: UndoContext) -> None:
    def gone() -> bool:
        return not is_listed(run_client.api, host, identity)

    try:
        wait_for("recovered", gone, seconds=RECOVERED_SECONDS, clock=context.clock)
    except DeadlineExpired as expired:
        raise CannotUndo(
            f"ClusterD was told that fault {identity} has recovered, and still lists it after {expired.seconds:g} s "
            "(ConfigMap statistic-fault-info): look at ClusterD's log, and send the message again"
        ) from expired


def _released(run_client: RunClient, host: str, fault: str | None) -> Release | None:
    became = run_client.release_node(host, fault)
    return None if became == "awaited" else became


def _text(step: UndoStep, name: str) -> str:
    value = step.arguments.get(name)
    if not isinstance(value, str) or not value:
        raise CannotUndo(f"step {step.id} does not name a {name}: {step.arguments}")
    return value
