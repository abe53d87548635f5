"""``node-stop``: asks a node to end; it goes on for its grace time, then ends with everything on it."""

from __future__ import annotations

import signal
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH
from chaos.plan.rules.parameters import Parameter

DEFAULT = 2
_KILLED = 128 + signal.SIGKILL
"""The exit code of a container whose first process was ended by SIGKILL."""


class NodeStop(FaultKind):
    """Stops the node with a grace time, which its first process does not use: the ranks get no signal.

    On Ascend: a pod that is deleted, or a container that is stopped, whose start script does not pass SIGTERM on.

    The recovery is measured from the node's end on, without the grace time.
    """

    name = "node-stop"
    surface = SURFACE
    effect = DEATH
    signal = signal.SIGKILL
    needs_from_start = NEEDS_NODES
    parameters = MappingProxyType(
        {"grace": Parameter("seconds from the order to the end", least=0, most=30, whole=True, default=DEFAULT)}
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back. The next launch has the node again, as new."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Stop the node, which takes the grace time."""
        node = node_of(job, victim)
        make_once(victim, node, _ended, lambda: node.stop(float(victim.parameters.get("grace", DEFAULT))))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node and the time of its end, and the rank's exit status."""
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
        return {"signal": status.signal, "node": shown, "told_by": status.told_by}


def _ended(shown: dict[str, Any]) -> bool:
    return bool(shown["status"] == "exited")


KIND = NodeStop()
"""The kind."""
