"""``partial-checkpoint``: replaces the second half of a rank's newest checkpoint by zeros; its length stays.

On Ascend: power lost before the last blocks are written.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.faults.checkpoints.checkpoint_damage import Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import blocks
from chaos.faults.kind import Victim

_BLOCK = 1 << 20


def half_written(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """Yield the first half of the file, and zeros up to its length."""
    del victim
    size = hit.path.stat().st_size
    yield from blocks(hit.path, size // 2)
    left = size - size // 2
    while left > 0:
        piece = min(left, _BLOCK)
        yield bytes(piece)
        left -= piece


KIND = Damage("partial-checkpoint", "written to its half only", half_written)
