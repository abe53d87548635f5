"""``node-oom``: lowers a node's memory limit to a little more than it uses; its ranks take more, and the kernel ends
them.

The machine's memory is never short. The ranks may stand still before their end, on a busy machine for 15 s.

On Ascend: a pod whose memory limit is too low for its ranks.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, node_of, restore_steps
from chaos.faults.rank_acts.own_end import OwnEnd
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import SLOW_DEATH, JobEffect
from chaos.plan.rules.parameters import Parameter

DEFAULT = 32
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class NodeOutOfMemory(OwnEnd):
    """Lowers the memory limit of a whole node until its ranks run into it."""

    effect: JobEffect = SLOW_DEATH
    surface = SURFACE
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Restore each node's memory."""
        return restore_steps(fault, victims, "memory", "give the host's memory back to")

    def inject(self, job: Job, victim: Victim) -> None:
        """Limit the node's memory, once, and let the rank take more. Raises FaultMissed where the rank is not held."""
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        spare = int(victim.parameters.get("megabytes", DEFAULT)) * _MEBIBYTE
        limit = node_of(job, victim).limit_memory(victim.fault, spare)
        victim.answer({"message": "act", "act": "oom", "most": limit + DEFAULT * _MEBIBYTE})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return SIGKILL as exit status, the platform's report of it, and the kernel's count of kills."""
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.signal != self.signal:
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with signal {int(signal.SIGKILL)}")
        node = node_of(job, victim)
        shown = {**node.shown(), **node.out_of_memory()}
        ended = shown["oom_events"] and shown["oom_kills"] >= max(1, len(victim.ranks))
        return {"signal": status.signal, "node": shown} if ended else None


KIND = NodeOutOfMemory(
    "node-oom",
    signal.SIGKILL,
    parameters=MappingProxyType(
        {"megabytes": Parameter("MiB that it may still take", least=16, most=1 << 20, whole=True, default=DEFAULT)}
    ),
)
"""The kind."""
