"""Faults of the storage that a job saves on."""

from __future__ import annotations

from chaos.evidence.injection.refusal import refused
from chaos.faults.family import Family, Kind, Undo
from chaos.faults.storage import proof

FAMILY = Family(
    kinds={
        "disk-full": Kind("chaos.faults.storage.disk_full:KIND", refused("ENOSPC")),
        "disk-quota": Kind("chaos.faults.storage.disk_quota:KIND", refused("ENOSPC")),
        "io-error": Kind("chaos.faults.storage.io_error:KIND", refused("EIO")),
        "no-permission": Kind("chaos.faults.storage.no_permission:KIND", refused("EPERM", "EACCES", place="directory")),
        "read-only": Kind("chaos.faults.storage.read_only:KIND", refused("EROFS")),
        "slow-storage": Kind("chaos.faults.storage.slow_storage:KIND", proof.SLOW),
        "storage-gone": Kind("chaos.faults.storage.storage_gone:KIND", refused("ENOENT")),
        "storage-stall": Kind("chaos.faults.storage.storage_stall:KIND", proof.STALL),
    },
    undo={
        "unmount-storage": Undo("chaos.faults.storage.undo:unmount_storage", after_processes=True),
        "thaw-storage": Undo("chaos.faults.storage.undo:thaw_storage"),
        "allow-writing": Undo("chaos.faults.storage.undo:allow_writing"),
    },
    rules="chaos.faults.storage.plan:RULES",
)
