"""``cpu-load``: makes other processes compete for exactly the cores that a rank runs on.

On Ascend: data loading or another job on these cores.
"""

from __future__ import annotations

import os
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from chaos.faults.beside import client as beside
from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.machine.linux.procfs import cpu_seconds, read_stat
from chaos.plan.rules.parameters import Parameter, value_of

_STANDING = ("T", "t", "Z", "X")
"""States of a process that needs no processor time (proc(5)): stopped, or ended."""


class CpuLoad(Condition):
    """Takes processor time."""

    surface = "resources"
    name = "cpu-load"
    parameters = MappingProxyType(
        {"processes": Parameter("processes on the rank's cores", least=1, most=256, whole=True, default=2), **LASTS}
    )
    from_outside = True

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """End the load."""
        return [beside.switch_step(fault, victims[0], "end the processes that take processor time")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Start the load. A second victim starts no further load."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        cores = ",".join(map(str, sorted(os.sched_getaffinity(victim.identity.pid))))
        beside.start("burn", victim, cores, str(value_of(victim.parameters, self.parameters, "processes")))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the processor time of each load process on the rank's cores, by the kernel."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        return self._burnt(victim, os.sched_getaffinity(victim.identity.pid))

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same; where the rank has ended, on the load's own cores."""
        with suppress(FaultMissed, ProcessLookupError):  # the rank may end during the look
            return self.evidence(job, victim)
        report = beside.report_of(victim)
        try:
            return None if report is None else self._burnt(victim, os.sched_getaffinity(report["pid"]))
        except ProcessLookupError:
            return None

    def _burnt(self, victim: Victim, cores: set[int]) -> dict[str, Any] | None:
        report = beside.report_of(victim)
        if report is None:
            return None
        consumed = {}
        for pid in report["children"]:
            stat, seconds = read_stat(pid), cpu_seconds(pid)
            if stat is None or stat.ppid != report["pid"] or stat.state in _STANDING:
                continue
            if os.sched_getaffinity(pid) & cores and seconds:
                consumed[pid] = seconds
        if len(consumed) < len(report["children"]):
            return None
        return {"signal": None, "beside": len(consumed), "cores": sorted(cores), "consumed": min(consumed.values())}

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether all of its processes have ended, by the kernel's word on their lock."""
        del job
        return beside.is_off(beside.switch_of(victim))


KIND = CpuLoad()
