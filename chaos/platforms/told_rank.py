"""The rank that MindSpore has given a process, by the process's own log, where its launcher has given it no number."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from chaos.platforms.outputs import Output, outputs_of
from chaos.platforms.procfs import PROC

# [WARNING] DISTRIBUTED(5919,7fb1,python):2026-11-21-06:03:17.689.115 […:428] PostProcess] This node 0 rank id: 0
_TOLD = re.compile(
    rb"^\[[A-Z]+\] \w+\((\d{1,10})[,:][^)]{0,200}\):.{0,600}\] This node \S{1,200} rank id: (\d{1,9})\s*$"
)

_LOOKED_AT = 4 * 2**20
"""Bytes of a log: MindSpore says it while it builds the cluster, before anything is trained."""
_LINE = 4096


def told_rank(pid: int, own_pids: Container[int], proc_root: Path = PROC) -> int | None:
    """The rank, None where no log says it of this very process, or several say different ones.

    ``own_pids`` are the PIDs that the process has, also in its container: the line must name one, since a log may hold
    what an earlier launch or another rank has written.
    """
    told: set[int] = set()
    for output in outputs_of(pid, proc_root):
        told |= _told(output, own_pids)
    return told.pop() if len(told) == 1 else None


def _told(output: Output, own_pids: Container[int]) -> set[int]:
    found = set()
    try:
        with output.open() as stream:
            while stream.tell() < _LOOKED_AT and (line := stream.readline(_LINE)):
                said = _TOLD.match(line)
                if said is not None and int(said[1]) in own_pids:
                    found.add(int(said[2]))
    except OSError:  # the process has ended
        return set()
    return found
