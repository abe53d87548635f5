"""``stale-checkpoint``: puts an older checkpoint of the same rank under the name of its newest one.

Only the stored step shows the fault.

On Ascend: storage restored to an earlier state.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.faults.checkpoints.checkpoint_damage import Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import blocks
from chaos.faults.kind import FaultMissed, Victim


def older(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """Yield the content of the checkpoint before. Raises FaultMissed where the rank has saved only one."""
    if hit.older is None:
        raise FaultMissed(f"rank {victim.rank} has no older checkpoint than {hit.path} to put in its place")
    return blocks(hit.older)


KIND = Damage("stale-checkpoint", "an older one", older, stale=True)
