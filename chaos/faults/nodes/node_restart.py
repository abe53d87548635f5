"""``node-restart``: ends a node with everything on it, and starts it again at once, with nothing on it."""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH


class NodeRestart(FaultKind):
    """Restarts the node, whose ranks are gone; only the cluster starts them there again.

    On Ascend: a container that its runtime restarts (restartPolicy), or a host that is back before it is missed.
    """

    name = "node-restart"
    surface = SURFACE
    effect = DEATH
    signal = signal.SIGKILL
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back, and the node runs."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Restart the node."""
        node = node_of(job, victim)
        make_once(victim, node, _restarted, node.restart)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of a node that was started after the launch, and the rank's exit status."""
        shown = node_of(job, victim).shown()
        status = job.exit_status(victim.identity) if _restarted(shown) else None
        if status is None:
            return None
        if status.signal != self.signal:
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with its node ({status.told_by})")
        return {"signal": status.signal, "node": shown, "told_by": status.told_by}


def _restarted(shown: dict[str, Any]) -> bool:
    return bool(shown["status"] == "running" and shown["restarted"])


KIND = NodeRestart()
"""The kind."""
