"""The platform of a scenario's job: another one than the file names, and the faults that a platform cannot carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.platforms.kind import PlatformKind, platform_kind, platform_kinds
from chaos.platforms.surfaces import NETWORK, SURFACES, WHOLE_NODES
from chaos.run.prepare.registered import Registered, look_up_names
from chaos.scenario.errors import Problem, printable
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario


def on_platform(loaded: LoadedScenario, platform: str | None, inventory: Path | None = None) -> LoadedScenario:
    """Return the scenario with its job on ``platform``, whatever the file says; None leaves it as it is.

    On the hosts of an ``inventory`` a job without a number of nodes is spread over all of them. Raises ScenarioError
    where the inventory does not fit.
    """
    if platform is None:
        return loaded
    changes: dict[str, object] = {"platform": platform}
    hosts = 0
    if inventory is not None:
        kind = platform_kind(platform)
        assert kind.by_inventory is not None
        assert kind.settings is not None
        nodes = kind.by_inventory(inventory)
        changes[kind.settings] = nodes.settings
        hosts = nodes.hosts
    return replace(loaded, cells=tuple(_moved(cell, changes, hosts) for cell in loaded.cells))


def _moved(cell: Cell, changes: Mapping[str, object], hosts: int) -> Cell:
    cluster = cell.scenario.cluster
    spread = {"nodes": hosts} if hosts and cell.lines.get("cluster.nodes") is None and not cluster.ranks % hosts else {}
    cluster = cluster.model_copy(update={**changes, **spread})
    return replace(cell, scenario=cell.scenario.model_copy(update={"cluster": cluster}))


def platform_problems(loaded: LoadedScenario, cell: Cell, registered: Registered | None = None) -> Iterator[Problem]:
    """Yield the scenario's demands that the platform cannot meet, each with its place. Starts nothing."""
    scenario = cell.scenario
    registered = registered or look_up_names(scenario)
    platform = registered.platform
    name = platform.name

    def problem(path: str, message: str, hint: str = "") -> Problem:
        line, column = cell.lines.nearest(path)
        return Problem(printable(str(loaded.path)), line, column, message, hint=hint)

    for reported in platform.problems(scenario, loaded.path.parent):
        yield reported if isinstance(reported, Problem) else problem(*reported)
    if scenario.job.storage.memory and platform.own_memory:
        yield problem(
            "job.storage.memory",
            f"on the platform {name} each node has memory of its own: what one keeps in memory no other could load",
            platform.own_memory,
        )
    if scenario.job.python is not None and platform.own_environment:
        yield problem(
            "job.python",
            f"on the platform {name} the ranks have the Python of their node, which is another machine's",
            f"leave it out, and name the Python in cluster.{platform.settings}",
        )
    if platform.needs_settings and platform.settings_in(scenario) is None:
        yield problem("cluster.platform", f"the platform {name} needs its settings: cluster.{name} is missing")
    if scenario.cluster.network and NETWORK not in platform.carries:
        able = [kind.name for kind in platform_kinds() if kind.network is not None]
        yield problem(
            "cluster.network",
            f"the platform {name} has no network between nodes that faults could act on",
            f"leave it out, or use {' or '.join(able)}",
        )
    for number in range(len(scenario.faults)):
        for key, message, hint in _fault_problems(registered, scenario, number):
            yield problem(f"faults.{number}.{key}", message, hint)
    # A genuine job has the cluster's own agent, and no stand-in.
    stands_in = scenario.job.agent and not registered.job.traits.genuine
    if not platform.traits.one_launcher and stands_in and scenario.cluster.nodes > 1:
        yield problem(
            "job.agent",
            f"on the platform {name} the stand-in of the cluster agent watches the ranks of one node only",
            "leave job.agent out, or use nodes: 1",
        )


def _fault_problems(registered: Registered, scenario: Scenario, number: int) -> Iterator[tuple[str, str, str]]:
    """Yield the obstacles to a fault there: a key of it, a message and a hint."""
    fault, platform = scenario.faults[number], registered.platform
    kind = registered.kinds[fault.kind]
    surface = kind.surface
    if surface not in platform.carries:
        yield "kind", *_not_carried(platform, fault.kind, surface)
    elif surface in WHOLE_NODES and fault.target.node is None:
        yield "target", f"{fault.kind} hits whole nodes, with all of their ranks", "give the target as node: N"
    elif kind.changes_nodes and not platform.changeable(scenario):
        message = f"{fault.kind} changes a node of the cluster, and the scenario names none that may be changed"
        yield "kind", message, f"name them in cluster.{platform.settings}.nodes"
    elif surface == NETWORK and scenario.cluster.nodes < 2:
        message = f"{fault.kind} changes the network between nodes, and this job has one node"
        yield "kind", message, "set cluster.nodes to 2 or more"


def _not_carried(platform: PlatformKind, fault: str, surface: str) -> tuple[str, str]:
    """Return why the platform cannot carry the kind of fault, and the remedy."""
    reason = platform.unsupported.get(surface)
    message = f"the platform {platform.name} cannot carry the fault kind {fault!r}: it cannot act on "
    message += SURFACES.get(surface, surface)
    if reason is not None:
        return f"{message}: {reason.reason}", reason.instead
    carried = ", ".join(SURFACES.get(effect, effect) for effect in sorted(platform.carries))
    return message, f"it carries faults that act on {carried}"
