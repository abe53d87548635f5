"""``truncate-checkpoint``: cuts the newest checkpoint of a rank off in the middle.

By default inside a value; with ``at: record`` between two values of a ``.ckpt``: a sound file with fewer values and
no checksum.

On Ascend: a node that fails before it has written its cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from chaos.base.plain_files import open_plain
from chaos.faults.checkpoints.checkpoint_damage import Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import blocks
from chaos.faults.kind import FaultMissed, Victim
from chaos.observe.checkpoints.ckpt_format import RECORD

_LONGEST_VARINT = 10


def cut_off(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """Yield the first half of the file, or the whole values in it."""
    half = hit.path.stat().st_size // 2
    return blocks(hit.path, whole_records(hit.path, half) if victim.parameters.get("at") == "record" else half)


def whole_records(path: Path, end: int) -> int:
    """Return the bytes of all records that are whole before byte ``end``. Raises FaultMissed without any."""
    whole = 0
    with open_plain(path) as file:
        while file.read(1) == bytes([RECORD]):
            length = _varint(file)
            if length is None or file.tell() + length > end:
                break
            whole = file.seek(length, 1)
    if not whole:
        raise FaultMissed(f"{path} has no records of which some are whole in its first half")
    return whole


def _varint(file: BinaryIO) -> int | None:
    value = 0
    for index in range(_LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            return value
    return None


KIND = Damage("truncate-checkpoint", "cut off in the middle", cut_off)
