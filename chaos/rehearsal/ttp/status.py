"""A rank's status, as numbers: in ranks' reports (ReportState) and in the vendor's log (MindIO TFT 7.3)."""

from __future__ import annotations

NORMAL = 0
RETRY = 1
"""The rank has found its own results wrong; its state is copied from a replica."""
UCE = 2
CORRUPTED = 3
HCCL = 4
INIT_FINISH = 5
"""A new process of a lost rank has registered and waits for the groups to be rebuilt."""
PREREPAIR_FINISH = 6
"""It has built its network, is part of the rebuilt groups, and waits for the state of a replica."""
UNKNOWN = 8

ONLINE = frozenset({RETRY, UCE, HCCL})
"""Errors of results, of the device or of communication, which can be repaired while all processes live."""

_IN_LOG = {RETRY: 9, HCCL: 12}
_RUN_STATUS = {UNKNOWN: 1, INIT_FINISH: 7, PREREPAIR_FINISH: 8}

FAULT_UCE, FAULT_PROCESS, FAULT_HCCL = 0, 1, 2
"""Kinds of faults in reports to the agent of the cluster."""


def in_log(status: int) -> int:
    """Return the number that the log shows for a reported status of the device."""
    return 0 if status in _RUN_STATUS else _IN_LOG.get(status, status)


def run_status(status: int) -> int:
    """Return the number that the log shows for a reported status of the process, 0 for anything else."""
    return _RUN_STATUS.get(status, 0)


def fault_of(status: int, lost: bool) -> int:
    """Return the kind of a fault in a report to the agent."""
    if lost:
        return FAULT_PROCESS
    return {RETRY: FAULT_UCE, UCE: FAULT_UCE, HCCL: FAULT_HCCL}.get(status, FAULT_PROCESS)
