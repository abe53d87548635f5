"""``fd-limit``: lets a rank open only ``spare`` more files.

Its soft limit is lowered; the hard one stays.

On Ascend: a low ``ulimit -n``, or a leak.
"""

from __future__ import annotations

from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.limits import highest_descriptor, open_files_limit, set_open_files_limit
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter, value_of

RESTORE_LIMIT = "restore-limit"
"""The undo action (chaos.faults.resources.undo)."""


class FdLimit(Condition):
    """Takes file descriptors."""

    surface = "resources"
    name = "fd-limit"
    parameters = MappingProxyType(
        {"spare": Parameter("descriptors left", least=8, most=1 << 20, whole=True, default=32), **LASTS}
    )
    from_outside = True

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Give each process its limit back."""
        return [
            UndoStep(
                f"{fault}-rank-{victim.rank}",
                fault,
                RESTORE_LIMIT,
                {**asdict(victim.identity), "soft": self._soft(victim)},
                f"give rank {victim.rank} its limit of open files back",
            )
            for victim in victims
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Lower the limit of the rank's very process."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        soft = self._soft(victim)
        limit = highest_descriptor(victim.identity.pid) + 1 + int(value_of(victim.parameters, self.parameters, "spare"))
        if limit >= soft:
            raise FaultMissed(f"rank {victim.rank} may open {soft} files, which is no more than {limit} already")
        try:
            set_open_files_limit(victim.here, limit)
        except LookupError as error:
            raise FaultMissed(f"rank {victim.rank} has ended") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's limit, and the number of descriptors left below it."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        limit = self._soft(victim)
        left = limit - highest_descriptor(victim.identity.pid) - 1
        spare = int(value_of(victim.parameters, self.parameters, "spare"))
        return {"signal": None, "limit": limit, "left": left} if left <= spare else None

    look_every = 0.0
    """The rank itself may raise its limit at any time."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the limit: the number of descriptors left below it is the job's affair by then."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        return {"limit": self._soft(victim)}

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the process has ended: its limit ends with it."""
        return has_ended(job.state(victim.identity))

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the process may open more again, or has ended."""
        return has_ended(job.state(victim.identity)) or self.evidence(job, victim) is None

    def _soft(self, victim: Victim) -> int:
        try:
            return open_files_limit(victim.here)
        except LookupError as error:
            raise FaultMissed(f"rank {victim.rank} has ended") from error


KIND = FdLimit()
