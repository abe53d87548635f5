"""The platform kubernetes: a node of the scenario is a pod, and in each pod a remote helper acts for the harness."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.base.clock import Clock
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.bundle import helper_argv
from chaos.machine.remote.client import HelperClient
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import ApiError, connect
from chaos.platforms.kubernetes.client.asking import RetryingApi, ask_with_retries
from chaos.platforms.kubernetes.client.kubeconfig import refuse_programs
from chaos.platforms.kubernetes.client.transport import ExecTransport
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.fault_message import is_fault_message
from chaos.platforms.kubernetes.identity import identity_of, refuse_another
from chaos.platforms.kubernetes.kind import KIND
from chaos.platforms.kubernetes.own_manifest import own_objects
from chaos.platforms.kubernetes.placing import rank_table, settled_placing
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.pods import Pods, why_waiting
from chaos.platforms.kubernetes.resources import CONFIGMAP, POD, WORKLOADS
from chaos.platforms.kubernetes.run_client import Release, RunClient, RunObject
from chaos.platforms.kubernetes.workload import Manifest, Named, manifests
from chaos.platforms.node_set import NodeSet
from chaos.platforms.nodes import END_NODES, Site
from chaos.platforms.remote_requirements import Asked, refuse_lacking
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes

START_SECONDS = 300.0
GONE_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_LONGEST_PRIVATE = 80
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


def label_of(token: str) -> str:
    """Return the run's identity as a label's value: itself where it may be one, else a digest of it."""
    return token if _LABEL.fullmatch(token) else f"sha256-{hashlib.sha256(token.encode()).hexdigest()[:40]}"


class KubernetesPlatform:
    """Makes the pods of a run."""

    name = KIND.name

    def simulated(self, nodes: int) -> str | None:
        """Return None: the nodes are pods of a cluster."""
        del nodes
        return None

    def open(self, site: Site) -> PodNodes:
        """Submit the job's pods and wait until all run. Raises PlatformError."""
        settings = site.settings
        if not isinstance(settings, Kubernetes):
            raise PlatformError("the platform kubernetes needs its settings: cluster.kubernetes is missing")
        _check_volume(settings, site)
        api = connect(settings.context)
        run_client = RunClient(api, settings.namespace, label_of(site.token), settings.nodes)
        cluster = {
            "kubeconfig": os.environ.get("KUBECONFIG"),
            "settings": settings.model_dump(mode="json"),
            "cluster": identity_of(api),
        }
        arguments = {"platform": self.name, **cluster}
        note = f"delete what carries {names.RUN_LABEL}={run_client.run} in namespace {run_client.namespace}"
        site.ledger.record(UndoStep("nodes", None, END_NODES, arguments, note))
        nodes = PodNodes(site, settings, run_client, cluster)
        try:
            nodes.submit()
            nodes.ready()
            nodes.check()
        except BaseException:
            nodes.close()
            raise
        return nodes

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Delete everything with the run's label, release the nodes that it holds, and wait until its pods have gone.

        A node that cannot be released does not stop the rest, and is reported at the end. The message of a public fault
        stays, and so does the mark of a node whose kubelet is not ready: they go with the fault's own undo step, which
        is open while they exist.
        """
        settings, run_client = cluster_of(arguments, token)
        deleted = run_client.delete_all(settings.workload, is_fault_message)
        nodes, held = _released(run_client, settings.nodes)
        messages = [config_map.name for config_map in run_client.list(CONFIGMAP) if is_fault_message(config_map)]
        left: list[str] = []

        def gone() -> bool:
            left[:] = [pod.name for pod in run_client.list(POD)]
            return not left

        if not _reached(gone, GONE_SECONDS, clock):
            raise PlatformError(f"deadline 'pods gone' of {GONE_SECONDS:g} s: pods of the run are still there: {left}")
        if held:
            raise PlatformError("; ".join(held))
        done = [f"deleted {', '.join(deleted)}"] if deleted else []
        done += [f"released node {name}" for name, became in nodes.items() if became == "released"]
        waiting = "is marked with this run until its kubelet says that it is ready"
        done += [f"node {name} {waiting}" for name, became in nodes.items() if became == "awaited"]
        done += [f"left ConfigMap {name}, whose public fault ClusterD may still hold" for name in messages]
        return "; ".join(done) or f"nothing of the run was left in namespace {run_client.namespace}"

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """Return the objects with the run's label, and the nodes that it holds."""
        settings, run_client = cluster_of(arguments, token)
        kinds = (WORKLOADS[settings.workload], POD, CONFIGMAP)
        # An object that is being deleted goes when the owner of its finalizer has released it.
        objects = [
            f"{kind.kind} {run_object.name}"
            for kind in kinds
            for run_object in run_client.list(kind)
            if run_object.object["metadata"].get("deletionTimestamp") is None
        ]
        return [*objects, *(f"node {name}, which it holds" for name in settings.nodes if run_client.holds_node(name))]

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        """Return another helper in the pod of that node."""
        settings, run_client = cluster_of(arguments, token)
        for pod in run_client.list(POD):
            state = pod_state(pod.object)
            if state.node == node and state.phase == "Running" and not state.deleting:
                return _helper(run_client, pod, settings.python, node, token, None)
        return None


def _reached(condition: Callable[[], bool], seconds: float, clock: Clock) -> bool:
    """Poll until the condition holds; return False when it does not hold in time."""
    deadline = clock.mono() + int(seconds * 1e9)
    while not condition():
        if clock.mono() > deadline:
            return False
        clock.sleep(_LOOK_SECONDS)
    return True


def _released(run_client: RunClient, nodes: Sequence[str]) -> tuple[dict[str, Release], list[str]]:
    """Return the outcome of the hold on each node, and the reasons why others could not be released."""
    became: dict[str, Release] = {}
    problems = []
    for name in nodes:
        try:
            became[name] = run_client.release_node(name)
        except PlatformError as error:
            problems.append(f"node {name} was not released: {error}")
    return became, problems


def cluster_of(arguments: Mapping[str, Any], token: str) -> tuple[Kubernetes, RunClient]:
    """Return the run's cluster by its undo step; it is asked again where it cannot answer just now.

    No program that its kubeconfig names is run, unless the caller's environment names that file. Raises NotOurs where
    the kubeconfig now leads to another cluster.
    """
    settings = Kubernetes.model_validate(arguments.get("settings"))
    kubeconfig = arguments.get("kubeconfig")
    # KUBECONFIG may name several files; then the environment has to name them again.
    single = Path(kubeconfig) if isinstance(kubeconfig, str) and os.pathsep not in kubeconfig else None
    if single is not None and not single.is_file():
        single = None
    if single is not None:
        refuse_programs(single)
    api = RetryingApi(connect(settings.context, single))
    refuse_another(arguments.get("cluster"), api)
    return settings, RunClient(api, settings.namespace, label_of(token), settings.nodes)


def _check_volume(settings: Kubernetes, site: Site) -> None:
    volume = settings.volume
    if volume is None:
        raise PlatformError(
            "cluster.kubernetes.volume is missing: the run's directory must be seen by its pods at the same path"
        )
    for path, what in ((site.run_dir, "--reports"), (site.private, "TMPDIR")):
        if not path.resolve().is_relative_to(volume.path):
            raise PlatformError(
                f"{path} is not below {volume.path} (cluster.kubernetes.volume), so the pods do not see it: set {what} "
                "to a directory there"
            )

    if len(str(site.private)) > _LONGEST_PRIVATE:
        raise PlatformError(
            f"{site.private} is too long for the sockets of the agents in it: set TMPDIR to a shorter path"
        )


def _helper(run_client: RunClient, pod: RunObject, python: str, node: int, token: str, visitors: Any) -> HelperClient:
    try:
        transport = ExecTransport(run_client.attach(pod, helper_argv(python)))
    except OSError as error:
        raise PlatformError(f"pod {pod.name}: no remote helper can be started in it: {error}") from error
    return HelperClient(transport, node, token, visitors)


class PodNodes(NodeSet[PodNode]):
    """The nodes of one run."""

    def __init__(self, site: Site, settings: Kubernetes, run_client: RunClient, cluster: Mapping[str, Any]) -> None:
        super().__init__(site)
        self._cluster = cluster
        self._settings = settings
        self._name = f"chaos-{names.run_digest(run_client.run)}"
        self.run_client = run_client
        self.pods = Pods(run_client, site.run_dir / "history", settings.workload, site.clock)

    @property
    def python(self) -> Path:
        """The interpreter of the ranks and of the remote helpers, in the image."""
        return Path(self._settings.python)

    def submit(self) -> None:
        """Make the job's objects. They carry the run's label, by which the undo step finds them."""
        if self._site.job is None:
            raise PlatformError("the job of the pods is not known")
        for manifest in self._objects(self._site.job):
            self.run_client.create(manifest)

    def _objects(self, job: Job) -> Sequence[Manifest]:
        named = Named(self.run_client.run, self._name)
        if self._settings.manifest is None:
            return manifests(self._settings, job, self._site.nodes, named)
        (directory, *_) = self._site.readable
        try:
            self._name, made = own_objects(directory / self._settings.manifest, self._settings, self._site.nodes, named)
        except ScenarioError as error:
            raise PlatformError(str(error)) from error
        return made

    def ready(self) -> Sequence[PodNode]:
        """Return all nodes, each a running pod with a remote helper that answers; a replaced pod is a new node."""
        waiting: dict[int, str] = {}

        def all_run() -> bool:
            waiting.clear()
            if self.pods.lost is not None:
                raise PlatformError(f"the run's pods can no longer be followed: {self.pods.lost}")
            for number in range(self._site.nodes):
                if not self._runs(number):
                    pod = self.pods.of_node(number)
                    waiting[number] = "it has no pod" if pod is None else why_waiting(self.run_client, pod)
            return not waiting

        def waits() -> str:
            failed = "; ".join(self.pods.failed)
            return ", ".join(f"node {number}: {why}" for number, why in waiting.items()) + (
                f"; {failed}" if failed else ""
            )

        if not _reached(all_run, START_SECONDS, self._site.clock):
            raise PlatformError(f"deadline 'pods' of {START_SECONDS:g} s: not all pods run: {waits()}")
        self._see_ranks()
        return self.all()

    def _see_ranks(self) -> None:
        """Record which rank is in which pod, and refuse a placing other than planned."""
        run_client, site = self.run_client, self._site

        def table() -> str | None:
            if self._settings.workload == "job":
                return None
            return ask_with_retries(lambda: rank_table(run_client, self._name), site.clock)

        pods = {node.number: node.pod.object for node in self._nodes.values()}
        placed = settled_placing(pods, ask=table, ranks=site.ranks, nodes=site.nodes, clock=site.clock)
        site.record_event(
            "ranks.placed", by=placed.by, pods={str(rank): pod for rank, pod in sorted(placed.pods.items())}
        )

    def check(self) -> None:
        """Check that the pods have everything the ranks need. Raises PlatformError."""
        asked = [Asked(f"pod {node.pod.name}", str(self.python), node.helper) for node in self.all()]
        refuse_lacking(self._site, asked, "take an image that has it, or name another cluster.kubernetes.python")

    def close(self) -> None:
        """Close the remote helpers, and stop following."""
        super().close()
        self.pods.close()

    def _runs(self, number: int) -> bool:
        """Return whether that node's pod runs; it has a remote helper then."""
        pod, node = self.pods.of_node(number), self._nodes.get(number)
        if pod is None or pod.phase != "Running" or not pod.ready:
            return False
        if node is not None and node.helper.lost is None and node.pod.uid == pod.uid:
            return True
        try:
            current = self.run_client.find(POD, pod.pod)
            address = ((current.object.get("status") or {}).get("podIP")) if current is not None else None
            if current is None or current.uid != pod.uid or not address:
                return False
            helper = _helper(
                self.run_client, current, self._settings.python, number, self._site.token, self._site.visitors
            )
        except ApiError as error:
            if error.passing:
                return False  # the API or the node's kubelet does not answer yet
            raise
        # The socket of a pod's remote helper stays on the volume, so each pod has a directory of its own.
        private = self._site.private / f"node-{number}-{pod.uid[:8]}"
        if node is not None:
            node.helper.close()
        self._nodes[number] = PodNode(
            number,
            current,
            pod_state(current.object),
            str(address),
            private,
            helper,
            self.run_client,
            self.pods,
            self._cluster,
        )
        return True
