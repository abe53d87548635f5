"""Faults of a rank's share of its machine."""

from __future__ import annotations

from chaos.faults.family import Attached, Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "cpu-load": Kind(
            "chaos.faults.resources.cpu_load:KIND", "chaos.faults.resources.proof:CPU_LOAD", Effect(starves=True)
        ),
        "cpu-quota": Kind(
            "chaos.faults.resources.cpu_quota:KIND", "chaos.faults.resources.proof:CPU_QUOTA", Effect(starves=True)
        ),
        "fd-limit": Kind("chaos.faults.resources.fd_limit:KIND", "chaos.faults.resources.proof:FD_LIMIT"),
        "memory-load": Kind("chaos.faults.resources.memory_load:KIND", "chaos.faults.resources.proof:MEMORY_LOAD"),
    },
    undo={
        "leave-group": Undo("chaos.faults.resources.undo:leave_group"),
        "restore-limit": Undo(
            "chaos.faults.resources.undo:restore_limit",
            attached=Attached("restore-limit-adopted", "prlimit --pid {pid} --nofile={soft}:"),
        ),
        "restore-limit-adopted": Undo("chaos.faults.resources.undo:restore_limit_adopted"),
    },
)
