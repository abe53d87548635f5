"""Undo steps of somebody else, done with the caller's own access: no file, key or program of a ledger is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.faults.action import CannotUndo
from chaos.faults.checkpoints.running_checkpoint import RESTORE_ADOPTED
from chaos.faults.cluster.in_cluster import RECOVER_PUBLIC_FAULT, RELEASE_NODE
from chaos.faults.cluster.on_mesh import DELETE_MESH
from chaos.faults.nodes.on_node import RESTORE as RESTORE_NODE
from chaos.heal.undo import UNDO_ACTIONS
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kind import PlatformKind, built_in_kind, platform_names
from chaos.platforms.nodes import END_NODES
from chaos.platforms.surfaces import CLUSTER

_NEVER = {
    RESTORE_ADOPTED: "it writes outside of the run's directory: look at both files, and copy it by hand",
    RESTORE_NODE: "it runs a program on that node: removing the nodes (end-nodes) undoes it as well",
}
"""Actions that no permission allows, with the reason and what to do."""


def with_caller_access(step: UndoStep, inventory: Path | None) -> UndoStep:
    """Return the step as an operator may permit it; ``inventory`` is the operator's. Raises CannotUndo."""
    if step.action not in UNDO_ACTIONS:
        raise CannotUndo(
            "this version has no such action, or another package provides it: such actions never run for another "
            "user's files"
        )
    if step.action in _NEVER:
        raise CannotUndo(_NEVER[step.action])
    if step.arguments.get("node") is not None or ("hosts" in step.arguments and step.action != END_NODES):
        raise CannotUndo(_NEVER[RESTORE_NODE])
    if step.action in (RELEASE_NODE, RECOVER_PUBLIC_FAULT, DELETE_MESH):
        return _with_access(_cluster_platform(), step, inventory)
    if step.action != END_NODES:
        return step
    name = step.arguments.get("platform")
    platform = built_in_kind(name) if isinstance(name, str) else None
    if platform is None or platform.caller_access is None:
        raise CannotUndo(
            f"the platform {name!r} comes from another package: such platforms never run for another user's files"
        )
    return _with_access(platform, step, inventory)


def _cluster_platform() -> PlatformKind:
    """Return the platform on which faults act on objects of a cluster."""
    return next(kind for name in platform_names() if (kind := built_in_kind(name)) and CLUSTER in kind.carries)


def _with_access(platform: PlatformKind, step: UndoStep, inventory: Path | None) -> UndoStep:
    """Return the step with the access that the caller has to the platform."""
    assert platform.caller_access is not None
    try:
        return replace(step, arguments=dict(platform.caller_access(step.arguments, inventory)))
    except PlatformError as error:
        raise CannotUndo(str(error)) from error
