"""``memory-load``: takes memory of a rank's machine, in another process.

The kernel ends that process first. Missed where less than half a gibibyte would be left.

On Ascend: a cache or another job on the same host.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import psutil

from chaos.faults.beside import client as beside
from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.machine.linux.procfs import resident_bytes
from chaos.plan.rules.parameters import Parameter

_MEBIBYTE = 1 << 20
_LEFT = 512
"""Mebibytes that must be left."""


class MemoryLoad(Condition):
    """Takes memory."""

    surface = "resources"
    name = "memory-load"
    parameters = MappingProxyType(
        {
            "megabytes": Parameter("its size in MiB", least=1, most=1 << 22, whole=True, required=True),
            **LASTS,
        }
    )
    from_outside = True
    of_machine = True

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Give the memory back."""
        return [beside.switch_step(fault, victims[0], "end the process that holds memory")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Start the process. A second victim starts no other."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        megabytes, free = int(victim.parameters["megabytes"]), psutil.virtual_memory().available // _MEBIBYTE
        if not beside.switch_of(victim).exists() and free - megabytes < _LEFT:
            raise FaultMissed(f"{free} MiB are available, so {megabytes} cannot be taken: {_LEFT} must be left")
        beside.start("hold_memory", victim, str(megabytes))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the memory of the process, by the kernel."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        return self.still(job, victim)

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same, whatever the rank does. The kernel ends this process first where memory gets short."""
        del job
        report = beside.report_of(victim)
        resident = None if report is None else resident_bytes(report["pid"])
        if resident is None or resident < int(victim.parameters["megabytes"]) * _MEBIBYTE:
            return None
        return {"signal": None, "resident": resident // _MEBIBYTE}

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the process has ended, by the kernel's word on its lock."""
        del job
        return beside.is_off(beside.switch_of(victim))


KIND = MemoryLoad()
