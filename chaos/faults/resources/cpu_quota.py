"""``cpu-quota``: limits a rank to a share of the processor's time, by a control group of the run.

With control groups v2 it is missed where no group above the rank delegates processor time.

On Ascend: a pod with a low limit of processor time.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.job.protocol import Job
from chaos.machine.linux.cgroup import cpu_hierarchy, group_of, place_for, throttle, throttled
from chaos.machine.linux.process import has_ended
from chaos.machine.linux.procfs import environment
from chaos.plan.rules.parameters import Parameter

LEAVE_GROUP = "leave-group"
"""The undo action (chaos.faults.resources.undo)."""


class CpuQuota(Condition):
    """Takes processor time by a quota."""

    surface = "resources"
    name = "cpu-quota"
    shows_when_let_go = True  # a rank that is held at a barrier uses none of its share
    parameters = MappingProxyType(
        {"cores": Parameter("cores' time for the rank", least=0.01, most=256, required=True), **LASTS}
    )
    from_outside = True
    needs = ("cgroup-cpu",)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Move each process back, and remove the groups."""
        hierarchy = cpu_hierarchy()
        if hierarchy is None:
            raise FaultMissed("no control group of this machine controls processor time")
        steps = []
        for victim in victims:
            pid = victim.identity.pid
            try:
                arguments = {
                    "group": str(place_for(pid, hierarchy) / self._group(victim)),
                    "back": str(group_of(pid, hierarchy)),
                }
            except OSError as error:
                raise FaultMissed(f"rank {victim.rank} cannot get a control group of its own: {error}") from error
            note = f"take rank {victim.rank} out of the control group with its quota, and remove that"
            steps.append(UndoStep(f"{fault}-rank-{victim.rank}", fault, LEAVE_GROUP, arguments, note))
        return steps

    def inject(self, job: Job, victim: Victim) -> None:
        """Make the group and move the process into it."""
        hierarchy = cpu_hierarchy()
        if hierarchy is None or has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended, or nothing controls its processor time")
        try:
            throttle(victim.here, self._group(victim), float(victim.parameters["cores"]), hierarchy)
        except LookupError as error:
            raise FaultMissed(f"rank {victim.rank} has ended") from error
        except OSError as error:
            raise FaultMissed(f"rank {victim.rank} cannot get a control group of its own: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's count of the process's waits in its group. Raises FaultMissed if the rank has ended."""
        hierarchy = cpu_hierarchy()
        if hierarchy is None or has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended before it used up its share")
        group = group_of(victim.identity.pid, hierarchy)
        if group.name != self._group(victim) or not (periods := throttled(group)):
            return None
        return {"signal": None, "group": group.name, "throttled": periods}

    look_every = 0.0
    """The group ends with the process."""

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the process has ended: it is in no group any more."""
        return has_ended(job.state(victim.identity))

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the process is in its group no longer."""
        hierarchy = cpu_hierarchy()
        if hierarchy is None or has_ended(job.state(victim.identity)):
            return True
        return group_of(victim.identity.pid, hierarchy).name != self._group(victim)

    def _group(self, victim: Victim) -> str:
        token = victim.run or (environment(victim.identity.pid) or {}).get(RUN_VARIABLE)
        if not token:
            raise FaultMissed(f"rank {victim.rank} has ended, or carries nothing of a run")
        return group_name(token, victim.fault, victim.rank)


def group_name(token: str, fault: str, rank: int) -> str:
    """Return the name of the control group: no other name has the run's identity in it."""
    return f"chaos-{token}-{fault}-{rank}"


KIND = CpuQuota()
