"""Undoing faults of whole nodes, through the platform that has made them."""

from __future__ import annotations

from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError


def restore_node(step: UndoStep, context: UndoContext) -> str:
    """Put back the changes of a fault to a whole node. Arguments: node, what."""
    match step.arguments:
        case {"node": int(number), "what": str(what)} if context.nodes is not None:
            try:
                return context.nodes.restore(number, what)
            except PlatformError as error:
                raise CannotUndo(str(error)) from error
        case _:
            raise CannotUndo(f"step {step.id} does not say which node of the run: {step.arguments}")
