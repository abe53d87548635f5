"""Faults of the storage that a job saves on."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo

FAMILY = Family(
    kinds={
        "disk-full": Kind("chaos.faults.storage.disk_full:KIND", "chaos.faults.storage.proof:NO_SPACE"),
        "disk-quota": Kind("chaos.faults.storage.disk_quota:KIND", "chaos.faults.storage.proof:NO_SPACE"),
        "io-error": Kind("chaos.faults.storage.io_error:KIND", "chaos.faults.storage.proof:IO_ERROR"),
        "no-permission": Kind("chaos.faults.storage.no_permission:KIND", "chaos.faults.storage.proof:NO_PERMISSION"),
        "read-only": Kind("chaos.faults.storage.read_only:KIND", "chaos.faults.storage.proof:READ_ONLY"),
        "slow-storage": Kind("chaos.faults.storage.slow_storage:KIND", "chaos.faults.storage.proof:SLOW"),
        "storage-gone": Kind("chaos.faults.storage.storage_gone:KIND", "chaos.faults.storage.proof:GONE"),
        "storage-stall": Kind("chaos.faults.storage.storage_stall:KIND", "chaos.faults.storage.proof:STALL"),
    },
    undo={
        "unmount-storage": Undo("chaos.faults.storage.undo:unmount_storage", after_processes=True),
        "thaw-storage": Undo("chaos.faults.storage.undo:thaw_storage"),
        "allow-writing": Undo("chaos.faults.storage.undo:allow_writing"),
    },
    rules="chaos.faults.storage.plan:RULES",
)
