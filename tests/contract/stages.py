"""Where a fault of each kind can be noted, made and undone in a moment: its surroundings, real or stand-ins.

A process, its files and what limits it are real. Tools of the vendor, an engine for containers and a cluster are
stand-ins that keep a state, as those of the unit tests do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.kind import FaultKind, Victim
from chaos.faults.registered import fault_kind
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_open_steps
from chaos.heal.undo_nodes import NodesByUndoSteps
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import mounts_at
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.docker.node import DockerNode
from chaos.platforms.network.holder import own_namespace
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory, create_run
from tests.contract.stage import RANK, Stage, local, parameters_of
from tests.contract.standins import Cards, Container, Kubelet, Network, Nodes, RemoteHelper
from tests.unit.faults.two_nodes import MISSING, PORT, REASON, begin, rules_left, victim_of
from tests.unit.faults.undo.test_undo_mesh_objects import TwoPods
from tests.unit.platforms.kubernetes.standin_api import SETTINGS, Cluster, Clusterd
from tests.unit.run.fakes import FakeJob, identity


@contextmanager
def on_a_card(kind: FaultKind, run: RunDirectory) -> Iterator[Stage]:
    """A rank on a card, of which only the vendor's tools tell."""
    cards = Cards()
    victim = Victim(RANK, identity(RANK), Path("record"), fault=kind.name, ranks=(RANK,), machine=cast(Any, cards))
    context = UndoContext(run.token, SYSTEM_CLOCK, commands=cast(Any, cards))
    yield Stage(kind, run, victim, cast(Job, FakeJob()), context, lambda: {"down": cards.down})


_APART = ("unshare", "--net", "--mount", "sleep", "1000")
"""The first process of a container: it has a network and mounts of its own."""


@contextmanager
def on_a_node(kind: FaultKind, run: RunDirectory) -> Iterator[Stage]:
    """A rank in a container, which the engine tells of, and the kernel as of a process in namespaces of its own."""
    if MISSING:
        pytest.skip(REASON)
    with local(kind, run, _APART) as there:
        container = Container(there.victim.identity.pid)
        own_namespace(container.pid, SYSTEM_CLOCK).do("ip", "link", "set", "lo", "up")
        began = container.attrs["State"]["StartedAt"]
        known, network, helper = cast(Any, container), cast(Any, Network()), cast(Any, RemoteHelper())
        node = DockerNode(1, "192.0.2.1", Path("private"), known, network, helper, began)
        victim = replace(there.victim, identity=replace(there.victim.identity, node=1))
        context = replace(there.context, nodes=cast(Any, Nodes(node)))

        def seen() -> dict[str, Any]:
            engine = {"status": container.status, "joined": set(container.joined), "limits": container.limited}
            assert victim.storage is not None
            cut = node.names_cut() if kind.surface == "names" else []
            return {**engine, "mounts": mounts_at(victim.storage, container.pid), "cut": cut}

        unnamed = kind.surface == "names" and "nameserver" not in Path("/etc/resolv.conf").read_text()
        lacking = "this machine has no resolver of names" if unnamed else there.not_made
        yield Stage(kind, run, victim, cast(Job, Nodes(node)), context, seen, not_made=lacking)


@dataclass(frozen=True)
class Routed:
    """A run of two ranks on nodes with networks of their own, behind a router; None of it where none can be made."""

    run: RunDirectory
    job: NodesJob


@contextmanager
def routed(place: Path) -> Iterator[Routed | None]:
    """Make it, unless this machine cannot."""
    if MISSING:
        yield None
        return
    run = create_run(place, "network")
    nodes, job = begin(run)
    try:
        yield Routed(run, job)
    finally:
        job.stop(0)
        nodes.close()
        undo_open_steps(run.ledger, UNDO_ACTIONS, UndoContext(run.token, SYSTEM_CLOCK))
        run.lock.release()


@contextmanager
def on_a_network(kind: FaultKind, run: RunDirectory, between: Routed | None) -> Iterator[Stage]:
    """A rank on the second of two nodes, which one router serves for all kinds: each puts back what it has done."""
    if between is None:
        with on_a_host(kind, run) as there:
            yield replace(there, not_made=REASON)
        return
    job, given = between.job, parameters_of(kind)
    given |= {"port": PORT} if "port" in given else {}
    reached = NodesByUndoSteps(between.run.token, between.run.ledger.read().steps, job.nodes)
    context = UndoContext(between.run.token, SYSTEM_CLOCK, nodes=reached)
    victim = replace(victim_of(between.run, job, rank=RANK, **given), fault=kind.name)
    yield Stage(kind, between.run, victim, job, context, lambda: {"rules": rules_left(job)})


@contextmanager
def on_a_host(kind: FaultKind, run: RunDirectory) -> Iterator[Stage]:
    """A rank on another host, which nothing here is."""
    with local(kind, run) as there:
        victim = replace(there.victim, identity=replace(there.victim.identity, node=1))
        there.victim, there.not_made = victim, "it needs another host"
        yield there


@contextmanager
def in_a_cluster(kind: FaultKind, run: RunDirectory, cluster: Cluster) -> Iterator[Stage]:
    """A rank in the second of two pods."""
    Clusterd(cluster)
    pods = TwoPods(cluster, run.token)
    for node in pods.nodes:
        node.pods = cast(Any, SimpleNamespace(state=lambda uid: None))
        node.cluster = {"kubeconfig": None, "settings": {**SETTINGS, "volume": {"path": "/data", "host_path": "/data"}}}
    victim = Victim(
        RANK,
        ProcessIdentity(7, 1, "boot", 1),
        Path("record"),
        fault=kind.name,
        ranks=(RANK,),
        storage=Path("/data/job/checkpoints"),
        parameters=parameters_of(kind),
        place=pods.nodes[1].place,
    )

    def seen() -> dict[str, Any]:
        """Objects that a fault may hold; pods that it takes are the cluster's to make again."""
        objects = {path: copy.deepcopy(one) for path, one in cluster.objects.items() if "/pods/" not in path}
        for one in objects.values():
            one["metadata"].pop("resourceVersion")
            one["metadata"].setdefault("annotations", {})
        return {"objects": objects}

    yield Stage(kind, run, victim, cast(Job, pods), UndoContext(run.token, Kubelet(cluster)), seen)


STAGES = {
    "agent": local,
    "process": local,
    "files": local,
    "mounts": local,
    "resources": local,
    "device": on_a_card,
    "node": on_a_node,
    "names": on_a_node,
    "host": on_a_host,
}
"""By what a kind acts on (:class:`chaos.faults.kind.FaultKind`), but for a cluster and the network."""


@dataclass(frozen=True)
class Surroundings:
    """What is made when a kind needs it: a cluster, which undo steps then reach, and a network."""

    cluster: Callable[[], Cluster]
    network: Callable[[], Routed | None]


def stage_of(name: str, run: RunDirectory, around: Surroundings) -> AbstractContextManager[Stage]:
    """The stage for a kind."""
    kind = fault_kind(name)
    surface = kind.surface
    if surface in ("pod", "cluster", "mesh"):
        return in_a_cluster(kind, run, around.cluster())
    if surface == "network":
        return on_a_network(kind, run, around.network())
    return STAGES[surface](kind, run)
