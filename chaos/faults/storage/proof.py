"""Proofs of faults of the storage."""

from __future__ import annotations

from chaos.evidence.injection.conditions import Condition, at_least, condition, is_true
from chaos.evidence.injection.refusal import refused

SLOW = condition(
    Condition(
        at_least("opened_after", "delay", "s"),
        unchanged=("mount",),
        taken="the process that delays it may have been ended, or its mount taken away",
    ),
    "how long the kernel took to open a file there",
    ("mount", "opened_after"),
)
STALL = condition(
    Condition(is_true("frozen"), unchanged=("mount",)),
    "the kernel's word that the file system is frozen",
    ("mount", "frozen"),
)
NO_SPACE = refused("ENOSPC")
IO_ERROR = refused("EIO")
NO_PERMISSION = refused("EPERM", "EACCES", place="directory")
READ_ONLY = refused("EROFS")
GONE = refused("ENOENT")
