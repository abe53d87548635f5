"""The processes that hold the cores of this host, for a run that waits for one."""

from __future__ import annotations

from chaos.base.rank_sets import spans
from chaos.evidence.text import readable
from chaos.live.state import CoreHolder
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
