"""What kinds have in common that lay a condition on ranks: it lasts for some time, and the job goes on under it.

The job must train as if nothing had happened, only slower. With ``seconds`` the condition ends while the job trains,
and the kernel must show that it held until then and that it has ended; without, it stays until the launch has ended,
and must be shown to be there then.
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
"""The parameter that all of them have."""


class Condition(Lasting, StillShown):
    """The part that is the same for all: effect, duration, and no answer to what a rank does."""

    effect = NONE
    shows_when_let_go = False
    ends_by_undo = True

    @abstractmethod
    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it holds, by the kernel."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same proof, asked for just before the end."""
        return self.evidence(job, victim)

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether that has ended on which it lay. A machine, a storage or a network has not."""
        del job, victim
        return False

    def lasts(self, victim: Victim) -> float:
        """As long as ``seconds`` says, or until the launch has ended. One that vanishes before proves nothing."""
        return float(victim.parameters.get("seconds", FOR_GOOD))

    def landed(self, victim: Victim) -> None:
        """Nothing more is done."""

    def end(self, victim: Victim) -> None:
        """Its undo steps end it, the same ones as after a killed harness."""

    def may_end(self, job: Job, victim: Victim) -> bool:
        """No rank keeps it from ending."""
        del job, victim
        return True
