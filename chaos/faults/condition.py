"""The common part of kinds that lay a condition on ranks: it lasts for some time, and the job goes on under it.

The job must train as if nothing had happened, only slower. With ``seconds`` the condition ends while the job trains,
and the kernel must show that it held until then and that it has ended; without, it stays until the launch has ended,
and the kernel must show that it is there then.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from chaos.faults.behaviours import Lasting, StillShown
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import NONE
from chaos.plan.rules.parameters import Parameter

FOR_GOOD = 1e9
"""Seconds of a condition that ends with the launch: more than any run may take."""

SECONDS = Parameter("how long it lasts, in seconds; left out: until the launch has ended", least=0.1, most=600)

LASTS: Mapping[str, Parameter] = MappingProxyType({"seconds": SECONDS})
"""The common parameter of all conditions."""


class Condition(Lasting, StillShown):
    """The common part of all conditions: effect, duration, and no answer to a rank's acts."""

    effect = NONE
    shows_when_let_go = False
    ends_by_undo = True

    @abstractmethod
    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof that it holds, by the kernel."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same proof just before the end."""
        return self.evidence(job, victim)

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the process or node under the condition has ended.

        A machine, a storage or a network has not.
        """
        del job, victim
        return False

    def lasts(self, victim: Victim) -> float:
        """Return ``seconds``, or the time until the launch has ended.

        A condition that vanishes before proves nothing.
        """
        return float(victim.parameters.get("seconds", FOR_GOOD))

    def note_landing(self, victim: Victim) -> None:
        """Do nothing more."""

    def end(self, victim: Victim) -> None:
        """Leave the end to the undo steps, the same ones as after a killed harness."""

    def may_end(self, job: Job, victim: Victim) -> bool:
        """Return True: no rank keeps it from ending."""
        del job, victim
        return True
