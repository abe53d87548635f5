"""Undoing faults of a run's own network: its router forgets the rules of a fault."""

from __future__ import annotations

from pathlib import Path

from chaos.history.ledger import UndoStep
from chaos.platforms.base import PlatformError
from chaos.platforms.network.router import Router
from chaos.run.undo_base import CannotUndo, UndoContext
from chaos.run.undo_storage import is_in_run

_NO_HARM = "the network of the run has gone with its harness"


def mend_network(step: UndoStep, context: UndoContext) -> str:
    """Remove a fault's rules. Arguments: run_dir, fault, nodes (numbers) that may have a limit."""
    match step.arguments:
        case {"run_dir": str(run_dir), "fault": str(fault), "nodes": list(nodes)} if all(
            isinstance(node, int) for node in nodes
        ):
            directory = Path(run_dir)
        case _:
            raise CannotUndo(f"step {step.id} does not say which network: {step.arguments}")
    if not directory.is_absolute() or not is_in_run(directory / "x", context.token):
        raise CannotUndo(f"{directory} is no directory of this run; nothing was changed")
    try:
        router = Router.recorded(directory)
        if router is None or not router.is_there:
            return _NO_HARM
        rules = router.mend(fault)
        limits = sum(router.free(fault, node) for node in nodes)
    except (PlatformError, ValueError, OSError) as error:
        raise CannotUndo(f"the run's network could not be put back: {error}") from error
    return f"removed {rules} rules and {limits} limits from the run's network"
