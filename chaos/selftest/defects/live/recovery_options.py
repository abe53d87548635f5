"""Defects of the options that shorten a recovery."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="memory-store-not-used",
        what="The job started again reads its checkpoint from storage, though it is in memory.",
        layer="SDK",
        base="live-memory",
        check="recovery",
        reason=("is read from memory", "rank 0 read", "from storage"),
        inside="chaos.selftest.live.recovery_options:memory_not_used",
    ),
    Defect(
        name="watchdog-asleep",
        what="The watchdog is not started, and the broken link is found by the collective's timeout.",
        layer="device layer",
        base="live-watchdog",
        check="recovery",
        reason=("the broken link is found by the watchdog", "the logs of rank 1 say"),
        inside="chaos.selftest.live.recovery_options:watchdog_asleep",
    ),
)
