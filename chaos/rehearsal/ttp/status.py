"""A rank's status, as numbers: what ranks report (ReportState) and what the vendor's log shows (MindIO TFT 7.3)."""

from __future__ import annotations

NORMAL = 0
UCE = 2
CORRUPTED = 3
HCCL = 4
UNKNOWN = 8

ONLINE = frozenset({UCE, HCCL})
"""Errors of the device or of communication, which can be repaired while all processes live."""

_IN_LOG = {HCCL: 12, UNKNOWN: 1}


def in_log(status: int) -> int:
    """The number that the log shows for a reported status."""
    return _IN_LOG.get(status, status)
