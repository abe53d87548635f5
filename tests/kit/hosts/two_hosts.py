"""A good run as two hosts record it: each with a monotonic clock and a wall clock of its own, both measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.kit.runs.good_run import GoodRun, Record, record

AHEAD_NS = 4_321_000_000_000
"""The second host's monotonic clock began that much earlier than the harness's."""

WALL_AHEAD_NS = -90_000_000_000


@dataclass(frozen=True)
class Host:
    """The host that the ranks ``ranks`` are on. ``error`` (ns) is what each of its clock's measurements may be off."""

    name: str
    ranks: tuple[int, ...]
    ahead: int = AHEAD_NS
    error: int = 200_000
    drift: int = 100_000
    wall_ahead: int = WALL_AHEAD_NS


def on_hosts(run: GoodRun, *hosts: Host) -> GoodRun:
    """The run with the ranks of each host on that host's clocks; the harness measures them at begin and end."""
    for host in hosts:
        for name, records in run.files.items():
            if any(f"rank_{rank}-" in name for rank in host.ranks):
                run.files[name] = [_moved(event, host) for event in records]
        for at, drifted in ((0.2, 0), (25.9, host.drift)):
            run.add("harness", _clock(host, at, drifted))
    return run


def _clock(host: Host, at: float, drifted: int) -> Record:
    own = record(at, "clock", host=host.name, boot=f"boot-{host.name}", error=host.error, trips=16)
    return {**own, "at": own["mono"], "offset": host.ahead + drifted}


def _moved(event: Record, host: Host) -> Record:
    place: dict[str, Any] = {"host": host.name, "boot": f"boot-{host.name}"} if "boot" in event else {}
    return {**event, **place, "mono": event["mono"] + host.ahead, "wall": event["wall"] + host.wall_ahead}
