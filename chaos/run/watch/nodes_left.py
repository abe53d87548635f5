"""Leftovers of a run on its nodes: reported by each node's helper, and by the platform once the nodes are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.faults.action import CannotUndo
from chaos.heal.undo_nodes import NodesByUndoSteps, platform_of_step
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.nodes import END_NODES, Node, TellsLeft, TellsRules

ON_NODE, AFTERWARDS = "hygiene.node", "hygiene.nodes"
"""Events: the report of a node's remote helper, and the platform's report when it has taken the nodes away."""


def record_on_nodes(
    history: HistoryWriter, token: str, steps: Iterable[UndoStep], nodes: Sequence[Node], directories: Sequence[str]
) -> None:
    """Record the leftovers on each node, when the jobs have been ended and the faults put back.

    ``directories`` are the run's directories. A node that cannot be asked is recorded with the reason.
    """
    reached = NodesByUndoSteps(token, steps, nodes)
    for node in nodes:
        history.record(ON_NODE, node=node.number, **_on_node(reached, node, directories))


def record_afterwards(history: HistoryWriter, token: str, steps: Iterable[UndoStep]) -> None:
    """Record the leftovers of the run's nodes on the platform, when the nodes have been taken away."""
    for step in steps:
        if step.action == END_NODES:
            history.record(AFTERWARDS, platform=step.arguments.get("platform"), **_afterwards(step, token))


def _on_node(reached: NodesByUndoSteps, node: Node, directories: Sequence[str]) -> dict[str, Any]:
    try:
        with reached.helper(node.number) as helper:
            if helper is None:
                return {"gone": True}
            # A new remote helper knows no earlier mount.
            is_node_helper = helper is node.helper
            left = helper.leftovers([*directories, str(node.private)])
        rules = {"rules": list(node.rules_left())} if isinstance(node, TellsRules) else {}
    except (PlatformError, CannotUndo) as error:
        return {"unasked": str(error)}
    return {"orphans": left["processes"], "mounts": left["mounts"] if is_node_helper else [], **rules}


def _afterwards(step: UndoStep, token: str) -> dict[str, Any]:
    try:
        platform = platform_of_step(step)
        return {"left": list(platform.left(step.arguments, token)) if isinstance(platform, TellsLeft) else []}
    except (PlatformError, CannotUndo) as error:
        return {"unasked": str(error)}
