"""Where a scenario's job is to live: another platform than the file names, and what a platform cannot carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from chaos.base.registry import registry
from chaos.faults.kind import means_of
from chaos.faults.network.on_network import MEANS
from chaos.platforms.kubernetes.check import Wanted
from chaos.platforms.kubernetes.own_manifest import own_problems
from chaos.platforms.nodes import NodePlatform
from chaos.platforms.ssh.inventory import read_inventory
from chaos.run.prepare.why_not import why_not
from chaos.scenario.errors import Problem, printable
from chaos.scenario.model import Scenario
from chaos.scenario.ssh import Ssh

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario


KUBERNETES = "kubernetes"


@runtime_checkable
class Examines(Protocol):
    """A platform that finds what of a scenario does not do on it."""

    def problems(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Each problem: a path in the scenario, a message and a hint. Starts nothing."""


def on_platform(loaded: LoadedScenario, platform: str | None, inventory: Path | None = None) -> LoadedScenario:
    """The scenario with its job on ``platform``, whatever the file says; None leaves it as it is.

    On the hosts of an ``inventory`` a job that says no number of nodes is spread over all of them. Raises ScenarioError
    where the inventory does not do.
    """
    if platform is None:
        return loaded
    changes: dict[str, object] = {"platform": platform}
    hosts = 0
    if inventory is not None:
        changes["ssh"] = Ssh(inventory=str(inventory.resolve()))
        hosts = len(read_inventory(inventory, user="", python=""))
    return replace(loaded, cells=tuple(_moved(cell, changes, hosts) for cell in loaded.cells))


def _moved(cell: Cell, changes: Mapping[str, object], hosts: int) -> Cell:
    cluster = cell.scenario.cluster
    spread = {"nodes": hosts} if hosts and cell.lines.get("cluster.nodes") is None and not cluster.ranks % hosts else {}
    cluster = cluster.model_copy(update={**changes, **spread})
    return replace(cell, scenario=cell.scenario.model_copy(update={"cluster": cluster}))


def platform_of(scenario: Scenario) -> str:
    """The platform that the job is started on: one whose nodes have networks of the run's own, where a fault needs
    them."""
    faults = registry("faults")
    wanted = any(means_of(faults.load(fault.kind)) == MEANS for fault in scenario.faults)
    name = scenario.cluster.platform
    return _WITH_NETWORKS.get(name, name) if wanted else name


def settings_of(scenario: Scenario) -> object:
    """What the scenario says for the platform that its job lives on (``cluster.<platform>``); None when nothing."""
    return getattr(scenario.cluster, scenario.cluster.platform.removesuffix("-networks").replace("-", "_"), None)


def context_of(scenario: Scenario) -> str | None:
    """The context of the kubeconfig that the job's cluster is reached by; None for the current one."""
    told = scenario.cluster.kubernetes
    return None if told is None else told.context


def platform_problems(loaded: LoadedScenario, cell: Cell) -> Iterator[Problem]:
    """What the platform cannot do of what the scenario asks for, each with its place. Starts nothing."""
    scenario = cell.scenario
    name = platform_of(scenario)
    platform = registry("platforms").load(name)

    def problem(path: str, message: str, hint: str = "") -> Problem:
        line, column = cell.lines.nearest(path)
        return Problem(printable(str(loaded.path)), line, column, message, hint=hint)

    if isinstance(own := platform(), Examines):
        for key, message, hint in own.problems(scenario, loaded.path.parent):
            yield problem(key, message, hint)
    if scenario.job.storage.memory and getattr(platform, "own_memory", False):
        yield problem(
            "job.storage.memory",
            f"on the platform {name} each node has memory of its own: what one keeps in memory no other could load",
            "leave memory out, or use a platform of one machine, such as local or docker",
        )
    if name == KUBERNETES and (cluster := scenario.cluster.kubernetes) is not None and cluster.manifest is not None:
        wanted = Wanted(
            scenario.job.strategies or None, scenario.cluster.nodes, scenario.cluster.ranks, cluster.namespace
        )
        yield from own_problems(loaded.path.parent / cluster.manifest, cluster, wanted)
    if getattr(platform, "must_be_told", False) and settings_of(scenario) is None:
        yield problem("cluster.platform", f"the platform {name} must be told where and how: cluster.{name} is missing")
    carries: frozenset[str] = getattr(platform, "carries", _ON_THIS_HOST)
    for number, fault in enumerate(scenario.faults):
        means = means_of(registry("faults").load(fault.kind))
        if means not in carries:
            told = why_not(means, name)
            yield problem(
                f"faults.{number}.kind",
                f"the platform {name} cannot carry the fault kind {fault.kind!r}: it cannot act on "
                f"{_MEANS.get(means, means)}{'' if told is None else f': {told[0]}'}",
                f"it carries faults that act on {', '.join(_MEANS[one] for one in sorted(carries))}"
                if told is None
                else told[1],
            )
        elif means in _WHOLE_NODES and fault.target.node is None:
            yield problem(
                f"faults.{number}.target",
                f"{fault.kind} hits whole nodes, with all of their ranks",
                "give the target as node: N",
            )
        elif getattr(registry("faults").load(fault.kind), "changes_nodes", False) and not _named_nodes(scenario):
            yield problem(
                f"faults.{number}.kind",
                f"{fault.kind} changes a node of the cluster, and the scenario names none that may be changed",
                "name them in cluster.kubernetes.nodes",
            )
        elif means == MEANS and scenario.cluster.nodes < 2:
            yield problem(
                f"faults.{number}.kind",
                f"{fault.kind} changes the network between nodes, and this job has one node",
                "set cluster.nodes to 2 or more",
            )
    if isinstance(platform(), NodePlatform) and scenario.job.agent and scenario.cluster.nodes > 1:
        yield problem(
            "job.agent",
            f"on the platform {name} the stand-in of the cluster agent watches the ranks of one node only",
            "leave job.agent out, or use nodes: 1",
        )


_WITH_NETWORKS: Mapping[str, str] = {"local": "local-networks", "docker": "docker-networks", "ssh": "ssh-networks"}
"""Where a job lives whose nodes are to have a network that faults can act on."""


def _named_nodes(scenario: Scenario) -> tuple[str, ...]:
    return scenario.cluster.kubernetes.nodes if scenario.cluster.kubernetes is not None else ()


_WHOLE_NODES = frozenset({"node", "names", "host", "pod", "mesh"})

_MEANS: Mapping[str, str] = {
    "agent": "a rank through the agent in it",
    "process": "a process by a signal",
    "files": "files of the job",
    "mounts": "mounts of the job's directory",
    "node": "a whole node",
    "names": "the resolvers of a node's names",
    "resources": "what the host gives a process",
    "network": "the network between nodes",
    "device": "an Ascend device by the vendor's tools",
    "host": "a machine's boot",
    "pod": "a pod",
    "cluster": "objects of a Kubernetes cluster",
    "mesh": "pods, by Chaos Mesh",
}
"""What a fault kind acts on, in words."""

_ON_THIS_HOST = frozenset(_MEANS) - {"node", "names", "pod", "cluster", "mesh"}
"""What a platform carries that says nothing: it starts jobs on this host, which is no node that could be acted on."""
