"""A killed run's leftovers on its platform: its containers, its hosts, this host's own network.

A search that fails is reported like a leftover: nobody knows what is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.faults.action import CannotUndo
from chaos.heal.undo_nodes import kind_of_step, platform_of_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kind import PlatformKind
from chaos.platforms.network.leftovers import leftovers_here
from chaos.platforms.nodes import END_NODES, TellsLeft


def left_on_platform(run_dir: Path, token: str, steps: Iterable[UndoStep]) -> list[str]:
    """Return the leftovers of a run there, in words. Its undo steps name its nodes, whether open or closed.

    A run without nodes has none: nothing is made on a platform before its step is in the ledger.
    """
    return [text for step in steps if step.action == END_NODES for text in _of_nodes(step, run_dir, token)]


def _of_nodes(step: UndoStep, run_dir: Path, token: str) -> list[str]:
    name = str(step.arguments.get("platform"))
    kind: PlatformKind | None = None
    leftovers: list[str] = []
    try:
        kind = kind_of_step(step)
        if kind.left is not None:
            leftovers += kind.left(step.arguments, token, run_dir)
        elif isinstance(platform := platform_of_step(step), TellsLeft):
            leftovers += platform.left(step.arguments, token)
    except (PlatformError, CannotUndo, KeyError) as error:
        leftovers.append(f"not searched: the platform {name}: {error}")
    if kind is not None and kind.in_kernel:
        try:
            leftovers += [f"in this host's own network: {leftover}" for leftover in leftovers_here(token)]
        except (PlatformError, OSError) as error:
            leftovers.append(f"not searched: this host's own network: {error}")
    return leftovers
