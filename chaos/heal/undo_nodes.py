"""The nodes of a run: how undo steps reach them and remove them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chaos.base.registry import UnknownName
from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kind import PlatformKind, platform_kind
from chaos.platforms.nodes import END_NODES, Node, NodePlatform, Restorable, RestoresNodes

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient


def end_nodes(step: UndoStep, context: UndoContext) -> str:
    """Remove the nodes that a platform has made. Arguments: ``platform``, and what it finds them by."""
    try:
        return platform_of_step(step).put_back(step.arguments, context.token, context.clock)
    except PlatformError as error:
        raise CannotUndo(str(error)) from error


class NodesByUndoSteps:
    """The nodes of the run ``token``: the living ones of ``nodes``, else as the undo steps say."""

    def __init__(self, token: str, steps: Iterable[UndoStep], nodes: Sequence[Node] = ()) -> None:
        self._token = token
        self._made = next((step for step in steps if step.action == END_NODES), None)
        self._own = {node.number: node for node in nodes}

    @contextmanager
    def helper(self, number: int) -> Iterator[HelperClient | None]:
        """Yield the remote helper on a node; None where the node no longer exists."""
        node = self._own.get(number)
        if node is not None and node.helper.lost is None and node.known == "running":
            yield node.helper
            return
        made = self._made
        helper = None if made is None else platform_of_step(made).reach(made.arguments, self._token, number)
        try:
            yield helper
        finally:
            if helper is not None:
                helper.close()

    def restore(self, number: int, what: str) -> str:
        """Put back what a fault has done to a whole node."""
        node, made = self._own.get(number), self._made
        if isinstance(node, Restorable):
            return node.restore(what)
        if made is None:
            raise CannotUndo(f"it is not known how node {number} is reached")
        platform = platform_of_step(made)
        if not isinstance(platform, RestoresNodes):
            raise CannotUndo(f"the platform {platform.name} cannot {what} node {number}")
        return platform.restore(made.arguments, self._token, number, what)


def kind_of_step(step: UndoStep) -> PlatformKind:
    """Return the kind of platform that an END_NODES step names. Raises CannotUndo."""
    name = str(step.arguments.get("platform", ""))
    try:
        return platform_kind(name)
    except UnknownName as error:
        raise CannotUndo(f"there is no platform {name!r} in this version; {step.note}") from error


def platform_of_step(step: UndoStep) -> NodePlatform:
    """Return the platform that an END_NODES step names. Raises CannotUndo."""
    kind = kind_of_step(step)
    platform = kind.make()
    if not isinstance(platform, NodePlatform):
        raise CannotUndo(f"the platform {kind.name!r} has no nodes; {step.note}")
    return platform
