"""What conditions have in common of which a cluster's API tells: it is asked again where it cannot answer just now."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from chaos.faults.condition import Condition
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.platforms.kubernetes.client.asking import asked


class ClusterCondition(Condition):
    """A condition with the API's word for its proof and its end. No answer is neither.

    Its evidence is what is ``shown``, where the API can answer just now: whoever waits for it looks again.
    """

    @abstractmethod
    def shown(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it holds, by the API. Raises ApiError."""

    @abstractmethod
    def over(self, job: Job, victim: Victim) -> bool:
        """Return whether the API says that it holds no more. Raises ApiError."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof just before the end, when nobody looks again: so the API is asked until it answers."""
        return asked(lambda: self.shown(job, victim))

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether it has ended, by the API's word."""
        return asked(lambda: self.over(job, victim))
