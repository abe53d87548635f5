"""``damage-record``: removes, truncates or corrupts the record of the last checkpoint, or restores the one before; the
checkpoints stay.

The record is each rank's ``meta.json`` (MindFormers' legacy layout) or ``latest_checkpointed_iteration.txt`` (new
layout, Megatron). ``how`` is ``remove`` (default), ``truncate``, ``corrupt`` (one bit of every byte flipped) or
``stale`` (it names the checkpoint before the newest).

On Ascend: storage that loses, damages or restores a small file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from chaos.base.walking import raise_too_deep
from chaos.faults.checkpoints.checkpoint_damage import Damage, kept_step
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import blocks
from chaos.faults.checkpoints.saved_files import finished, storage_of
from chaos.faults.kind import FaultMissed, Victim
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.observe.checkpoints.mindformers_layout import find_trackers
from chaos.observe.checkpoints.mindformers_records import META, TRACKER
from chaos.observe.checkpoints.tracked_layouts import save_of
from chaos.plan.job_effect import RECORD

_BIT = 0x40
"""The bit that corruption changes: digits become letters, brackets and quotes something else, and text stays text."""


def record_of(victim: Victim) -> Hit:
    """Return the record of the rank's newest checkpoint. Raises FaultMissed where there is none."""
    storage = storage_of(victim)
    trackers = find_trackers(storage, raise_too_deep)
    for path in (storage / f"rank_{victim.rank}" / META, *trackers):
        if path.is_file() and not path.is_symlink() and not path.parent.is_symlink():
            step = kept_step(path, path, victim)
            if step is None:
                raise FaultMissed(f"{path} does not show which checkpoint is the last")
            return Hit(path, step, None)
    raise FaultMissed(f"rank {victim.rank} has no record of its checkpoints below {storage}")


def changed(hit: Hit, victim: Victim) -> Iterable[bytes] | None:
    """Return the content for the record's place, None for nothing."""
    match victim.parameters.get("how", "remove"):
        case "stale":
            return [_before(hit, victim)]
        case "truncate":
            return blocks(hit.path, hit.path.stat().st_size // 2)
        case "corrupt":
            return (bytes(byte ^ _BIT for byte in block) for block in blocks(hit.path))
        case _:
            return None


def _before(hit: Hit, victim: Victim) -> bytes:
    """Return the record of the checkpoint before. Raises FaultMissed where the rank has saved only one."""
    older = [path for step, path in finished(victim) if step < hit.step]
    if not older:
        raise FaultMissed(f"rank {victim.rank} has no older checkpoint than that of step {hit.step} to be named")
    if hit.path.name == TRACKER and (save := save_of(older[-1])) is not None:
        return str(save.step).encode()
    (named,) = [
        checkpoint
        for checkpoint in find_checkpoints(storage_of(victim), raise_too_deep)
        if checkpoint.path == older[-1]
    ]
    names = {"last_epoch": named.epoch, "last_step": named.step_in_epoch, "last_ckpt_file": named.path.name}
    return json.dumps(names).encode()


KIND = Damage("damage-record", "no true record of the checkpoints", changed, find=record_of, effect=RECORD)
