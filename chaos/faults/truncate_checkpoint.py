"""``truncate-checkpoint``: the newest checkpoint of a rank ends in the middle.

On Ascend: a node that goes down before its page cache is written, or storage that runs full behind the writer's back.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.faults.checkpoint_damage import Damage, Hit, blocks
from chaos.faults.kind import Victim


def half(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """The first half of the file: inside a tensor, since the largest is longer than what is before or behind it."""
    del victim
    return blocks(hit.path, size_of_half(hit.path))


def size_of_half(path: Path) -> int:
    """Bytes that are left."""
    return path.stat().st_size // 2


KIND = Damage("truncate-checkpoint", "cut off in the middle", half)
