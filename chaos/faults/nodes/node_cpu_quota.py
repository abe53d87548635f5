"""``node-cpu-quota``: limits all ranks of a node together to a share of the processor's time.

On Ascend: a pod with a low limit of processor time, or a loaded host.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_ended, node_of, restore_steps
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter


class NodeCpuQuota(Condition):
    """Takes processor time from a whole node by a quota."""

    surface = SURFACE
    name = "node-cpu-quota"
    shows_when_let_go = True  # a rank that is held at a barrier uses none of its share
    parameters = MappingProxyType(
        {
            "cores": Parameter("cores' time for the node", least=0.01, most=256, required=True),
            **LASTS,
        }
    )
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Restore each node's processor time."""
        return restore_steps(fault, victims, "processors", "give all processor time back to")

    def inject(self, job: Job, victim: Victim) -> None:
        """Lay the quota on the node, once."""
        node, cores = node_of(job, victim), float(victim.parameters["cores"])
        make_once(victim, node, lambda shown: node.quota() > 0, lambda: node.limit_processors(cores))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the node's quota, and the kernel's count of its waits.

        Raises FaultMissed if the rank has ended.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended before its node used up its share")
        return self.still(job, victim)

    look_every = 1.0
    """The node may end, or be ended by another fault."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same, whatever the rank does."""
        node = node_of(job, victim)
        periods = node.waited()
        return {"signal": None, "quota": node.quota(), "throttled": periods} if periods else None

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the node has ended."""
        return node_ended(job, victim)

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the platform says that the node has no quota any more."""
        return has_ended(job.state(victim.identity)) or node_of(job, victim).quota() == 0


KIND = NodeCpuQuota()
"""The kind."""
