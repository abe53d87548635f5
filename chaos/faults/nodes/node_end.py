"""The common part of faults that end a whole node, with the processes of its ranks."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, ActsOnNode, make_once, node_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH

_KILLED = 128 + signal.SIGKILL
"""The exit code of a container whose first process was ended by SIGKILL."""


class NodeEnd(FaultKind):
    """A fault kind that ends a node. The kernel ends the node's ranks with its first process, by SIGKILL."""

    surface = SURFACE
    effect = DEATH
    signal = signal.SIGKILL
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back. The next launch has a new node."""
        del fault, victims
        return []

    def is_made(self, shown: dict[str, Any]) -> bool:
        """Return whether the platform's record of the node shows the fault: it has ended."""
        return bool(shown["status"] == "exited")

    def require_kill(self, shown: dict[str, Any], victim: Victim) -> None:
        """Raise FaultMissed where the node has ended in another way than by SIGKILL, or for want of memory."""
        if shown["oom_killed"] or shown["exit_code"] != _KILLED:
            raise FaultMissed(f"the platform says that the node of rank {victim.rank} ended otherwise: {shown}")

    def end_node(self, job: Job, victim: Victim, act: Callable[[ActsOnNode], None]) -> None:
        """End the node, once for all of its ranks."""
        node = node_of(job, victim)
        make_once(victim, node, self.is_made, lambda: act(node))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node's end, and the rank's exit status."""
        shown = node_of(job, victim).shown()
        if not self.is_made(shown):
            return None
        self.require_kill(shown, victim)
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.signal != self.signal:
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with its node ({status.told_by})")
        return {"signal": status.signal, "node": shown, "told_by": status.told_by}
