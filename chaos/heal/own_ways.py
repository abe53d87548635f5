"""Undo steps that somebody else has written, by the caller's own ways: never by a file, key or program of a ledger."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.faults.action import CannotUndo
from chaos.faults.checkpoints.running_checkpoint import RESTORE_ADOPTED
from chaos.faults.cluster.in_cluster import RECOVER_PUBLIC_FAULT, RELEASE_NODE
from chaos.faults.cluster.on_mesh import DELETE_MESH
from chaos.faults.nodes.on_node import RESTORE as RESTORE_NODE
from chaos.heal.undo import UNDO_ACTIONS
from chaos.history.ledger import UndoStep
from chaos.platforms.docker.engine import address_of
from chaos.platforms.nodes import END_NODES
from chaos.platforms.ssh.inventory import Host, read_inventory
from chaos.scenario.errors import ScenarioError

Arguments = Mapping[str, Any]

_NEVER = {
    RESTORE_ADOPTED: "it writes outside of the run's directory: look at both files, and copy it by hand",
    RESTORE_NODE: "it acts through a program on that node: taking the nodes away (end-nodes) puts it back as well",
}
"""Actions that are done on nobody's word, with the reason and what to do."""


def by_own_ways(step: UndoStep, inventory: Path | None) -> UndoStep:
    """The step as it may be done on the word of an operator; ``inventory`` is the operator's. Raises CannotUndo."""
    if step.action not in UNDO_ACTIONS:
        raise CannotUndo("there is no such action in this version, or it is another package's: it gets nothing foreign")
    if step.action in _NEVER:
        raise CannotUndo(_NEVER[step.action])
    if step.arguments.get("node") is not None or ("hosts" in step.arguments and step.action != END_NODES):
        raise CannotUndo(_NEVER[RESTORE_NODE])
    if step.action in (RELEASE_NODE, RECOVER_PUBLIC_FAULT, DELETE_MESH):
        return replace(step, arguments=dict(_of_cluster(step.arguments)))
    if step.action != END_NODES:
        return step
    platform = step.arguments.get("platform")
    if not isinstance(platform, str) or platform not in _WAYS:
        raise CannotUndo(f"the platform {platform!r} is another package's: it gets nothing foreign")
    return replace(step, arguments=dict(_WAYS[platform](step.arguments, inventory)))


def _as_it_is(arguments: Arguments, inventory: Path | None) -> Arguments:
    del inventory
    return arguments


def _of_cluster(arguments: Arguments, inventory: Path | None = None) -> Arguments:
    """By the caller's kubeconfig, which must lead to the cluster that the step names."""
    del inventory
    if not isinstance(arguments.get("cluster"), Mapping):
        raise CannotUndo("it does not say which cluster it means, so no kubeconfig of yours can be held against it")
    return {**arguments, "kubeconfig": None}


def _of_engine(arguments: Arguments, inventory: Path | None) -> Arguments:
    """By the caller's engine, which must be the one that the step names."""
    del inventory
    engine, own = arguments.get("engine"), address_of(None)
    if engine != own:
        raise CannotUndo(f"its Docker engine is {engine!r}, and yours is {own!r}: if it is that, set DOCKER_HOST to it")
    if not isinstance(arguments.get("identity"), str) or not arguments["identity"]:
        raise CannotUndo("it does not say which Docker engine it means, so yours cannot be held against it")
    return arguments


def _of_hosts(arguments: Arguments, inventory: Path | None) -> Arguments:
    """By the caller's inventory: user, key, program and directory are those that it has for the same hosts."""
    if inventory is None:
        raise CannotUndo("it acts on hosts by SSH: name the inventory that has them, --inventory FILE")
    try:
        own = read_inventory(inventory, user=getpass.getuser(), python=sys.executable)
    except ScenarioError as error:
        raise CannotUndo(str(error)) from error
    named = arguments.get("hosts")
    hosts = [_same(one, own, inventory) for one in named] if isinstance(named, list) else []
    if not hosts:
        raise CannotUndo("it does not say which hosts it means")
    return {**arguments, "hosts": [host.as_json() for host in hosts]}


def _same(named: Any, own: tuple[Host, ...], inventory: Path) -> Host:
    wanted = [named.get(key) for key in ("name", "address", "port")] if isinstance(named, Mapping) else []
    for host in own:
        if wanted == [host.name, host.address, host.port]:
            return host
    told = " ".join(map(str, wanted)) or "of no name"
    raise CannotUndo(f"the host {told} is not in {inventory}: nothing was sent to it")


_WAYS: Mapping[str, Callable[[Arguments, Path | None], Arguments]] = {
    "kubernetes": _of_cluster,
    "docker": _of_engine,
    "docker-networks": _of_engine,
    "ssh": _of_hosts,
    "ssh-networks": _of_hosts,
    "local-nodes": _as_it_is,
    "local-networks": _as_it_is,
}
