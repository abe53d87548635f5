"""``node-volume-gone``: takes the volume with the job's checkpoints from one node only, until the next launch.

The kernel answers with ENOENT. Open and saved files stay.

On Ascend: a dropped NFS mount, or a detached volume.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, ActsOnNode, make_once, node_of, restore_steps
from chaos.faults.storage.storage import directory_of, name_refused, shown
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount, mounts_at
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import VOLUME_GONE


class NodeVolumeGone(FaultKind):
    """Takes the volume from a node."""

    name = "node-volume-gone"
    surface = SURFACE
    effect = VOLUME_GONE
    needs = ("mounts",)
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Give each node its volume back."""
        return restore_steps(fault, victims, "directories", "give the volume back to")

    def inject(self, job: Job, victim: Victim) -> None:
        """Take the volume from the node, once."""
        node, directory = node_of(job, victim), directory_of(victim)
        directory.mkdir(parents=True, exist_ok=True)
        before = _mount_of_rank(job, victim, node)
        make_once(victim, node, lambda _: before is not None and before.removed, lambda: node.take_directory(directory))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the removed directory that the rank sees, and the kernel's refusal of a file."""
        node, directory = node_of(job, victim), directory_of(victim)
        mount = _mount_of_rank(job, victim, node)
        if mount is None or not mount.removed:
            return None
        refused = name_refused(directory, node.process_here(victim.identity.pid))
        return shown(mount, refused) if refused == "ENOENT" else None


def _mount_of_rank(job: Job, victim: Victim, node: ActsOnNode) -> Mount | None:
    """Return the mount that the rank's own process sees there, by the kernel. Raises FaultMissed if it has ended."""
    if has_ended(job.state(victim.identity)):
        raise FaultMissed(f"rank {victim.rank} has ended")
    mounts = mounts_at(directory_of(victim), node.process_here(victim.identity.pid))
    return mounts[-1] if mounts else None


KIND = NodeVolumeGone()
"""The kind."""
