"""``node-kill``: ends a node at once, with everything on it."""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH

_KILLED = 128 + signal.SIGKILL
"""The exit code of a container whose first process was ended by SIGKILL."""


class NodeKill(FaultKind):
    """Kills the node's first process, by which the kernel ends all others.

    On Ascend: a host that loses its power, or a pod that is killed; the cluster starts another one.
    """

    name = "node-kill"
    surface = SURFACE
    effect = DEATH
    signal = signal.SIGKILL
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back. The next launch has the node again, as new."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """End the node."""
        node = node_of(job, victim)
        make_once(victim, node, _ended, node.kill)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node, and the exit status of the rank's process."""
        shown = node_of(job, victim).shown()
        if not _ended(shown):
            return None
        if shown["oom_killed"] or shown["exit_code"] != _KILLED:
            raise FaultMissed(f"the platform says that the node of rank {victim.rank} ended otherwise: {shown}")
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.signal != self.signal:
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with its node ({status.told_by})")
        return {"signal": status.signal, "node": shown, "told_by": status.told_by or "the kernel, by the remote helper"}


def _ended(shown: dict[str, Any]) -> bool:
    return bool(shown["status"] == "exited")


KIND = NodeKill()
