"""``oom``: makes a rank take more memory than it may have; the kernel's OOM killer ends it with SIGKILL.

The limit is a control group's, for further memory; the machine's memory is never short. Without such a group the
scenario is refused.

On Ascend: a pod beyond its memory limit.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.rank_acts.own_end import OwnEnd
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.memory_group import MemoryGroups, NoMemoryGroup, kills, memory_groups
from chaos.plan.rules.parameters import Parameter

REMOVE = "remove-memory-group"
"""The undo action (chaos.faults.rank_acts.undo)."""

DEFAULT = 32
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class OutOfMemory(OwnEnd):
    """Lets the rank run into the limit of a control group."""

    needs = ("memory-group",)
    surface = "resources"

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Remove the control group of each rank, once its process has ended."""
        groups = _groups()
        return [
            UndoStep(
                f"{fault}-rank-{victim.rank}",
                fault,
                REMOVE,
                {"path": str(groups.path(_name(victim)))},
                f"remove the control group of rank {victim.rank}",
            )
            for victim in victims
        ]

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act, and its most memory: more than the limit, and not much more."""
        return {**super().order(victim), "most": 2 * _limit(victim) + 32 * _MEBIBYTE}

    def inject(self, job: Job, victim: Victim) -> None:
        """Make the group, move the process into it, and let it take memory.

        Raises FaultMissed where the rank cannot get a group.
        """
        self.held(victim)
        try:
            groups = _groups()
            groups.put(groups.make(_name(victim), _limit(victim)), victim.here)
        except LookupError as error:
            raise FaultMissed(f"rank {victim.rank} has ended") from error
        except OSError as error:
            raise FaultMissed(f"rank {victim.rank} cannot get a control group of its own: {error}") from error
        super().inject(job, victim)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return SIGKILL as exit status, and the kernel's count of kills in that group."""
        shown = super().evidence(job, victim)
        if shown is None:
            return None
        count = kills(_groups().path(_name(victim)))
        if not count:
            raise FaultMissed(f"rank {victim.rank} was killed, but its control group counts {count} for want of memory")
        return {**shown, "oom_kill": count, "limit": _limit(victim)}


def _groups() -> MemoryGroups:
    try:
        return memory_groups()
    except (NoMemoryGroup, OSError) as error:
        raise FaultMissed(f"no control group with a limit of memory can be made: {error}") from error


def _name(victim: Victim) -> str:
    """Return a name that no other process's group has."""
    return f"{victim.identity.pid}-{victim.identity.start_time}"


def _limit(victim: Victim) -> int:
    return int(victim.parameters.get("megabytes", DEFAULT)) * _MEBIBYTE


KIND = OutOfMemory(
    "oom",
    signal.SIGKILL,
    parameters=MappingProxyType(
        {"megabytes": Parameter("MiB that it may still take", least=16, most=1 << 20, whole=True, default=DEFAULT)}
    ),
)
