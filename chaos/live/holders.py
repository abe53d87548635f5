"""The processes that hold the cores of this host, and the harnesses that wait for one."""

from __future__ import annotations

import time

from chaos.base.rank_sets import spans
from chaos.evidence.text import readable
from chaos.live.state import CoreHolder, CoresWait
from chaos.machine.leases import LeaseError, Leases

_LONGEST = 200


def waiting_for_cores(leases: Leases | None = None) -> tuple[CoreHolder, ...]:
    """Return the recorded holders of this host's cores, the holder of the first core first."""
    try:
        by_core = (leases or Leases()).holders_of_cores()
    except LeaseError:
        return ()
    cores: dict[int, list[int]] = {}
    for core, holder in by_core.items():
        cores.setdefault(holder.pid, []).append(core)
    of_pid = {holder.pid: holder for holder in by_core.values()}
    return tuple(
        CoreHolder(
            spans(numbers),
            pid,
            readable(of_pid[pid].user),
            of_pid[pid].since,
            readable(of_pid[pid].run),
            readable(of_pid[pid].command)[:_LONGEST],
        )
        for pid, numbers in cores.items()
    )


def waits_for_cores(leases: Leases | None = None, now: float | None = None) -> tuple[CoresWait, ...]:
    """Return the harnesses of this user that wait for a core, each with the holders of the cores."""
    try:
        used = leases or Leases()
        waiters = used.waiting_for_cores()
    except LeaseError:
        return ()
    if not waiters:
        return ()
    seconds, holders = time.time() if now is None else now, waiting_for_cores(used)
    return tuple(
        CoresWait(waiter.process.pid, waiter.process.since, seconds - waiter.process.since, waiter.limit, holders)
        for waiter in waiters
    )
