"""``node-reboot``: reboots the machine that a rank runs on.

The plan refuses it on the platform local, where the harness runs.

On Ascend: ``reboot``.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from chaos.faults.ascend.on_device import NEEDS_SCENARIO
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH
from chaos.plan.rules.hazard import Hazard


@runtime_checkable
class RebootsNodes(Protocol):
    """Further methods of a job on a platform with several hosts. All raise PlatformError.

    ``reboots`` are the orders that were given: the fault's id, and the node.
    """

    @property
    def reboots(self) -> set[tuple[str, int]]: ...

    def reboot_node(self, node: int, boot: str) -> None:
        """Order the reboot of the node of that number, which must still be in the boot ``boot``."""

    def boot_of_node(self, node: int) -> str | None:
        """Return the kernel's boot ID of that node; None while it does not answer."""


class NodeReboot(FaultKind):
    """Reboots a node."""

    name = "node-reboot"
    surface = "host"
    effect = DEATH
    needs_from_start = NEEDS_SCENARIO
    hazard = Hazard(
        "severe",
        "reboots the machine, with everything that runs on it",
        "it comes back by itself, or not at all",
        device=False,
        whole_host=True,
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a reboot cannot be put back. The node comes back by itself, or not at all."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Order the node's reboot, once. A node that is in another boot already was not rebooted by this fault."""
        nodes, node = _node(job, victim)
        order = (victim.fault, node)
        if order not in nodes.reboots:
            nodes.reboot_node(node, victim.identity.boot)
            nodes.reboots.add(order)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the node's new boot, and the boot of the rank's process."""
        nodes, node = _node(job, victim)
        boot = nodes.boot_of_node(node)
        if boot is None or boot == victim.identity.boot:
            return None
        return {"signal": None, "boot": {"before": victim.identity.boot, "after": boot}}


def _node(job: Job, victim: Victim) -> tuple[RebootsNodes, int]:
    if not isinstance(job, RebootsNodes) or victim.identity.node is None:
        raise FaultMissed("the platform that the job lives on cannot reboot a node")
    return job, victim.identity.node


KIND = NodeReboot()
