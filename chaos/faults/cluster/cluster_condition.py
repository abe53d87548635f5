"""The common part of conditions that a cluster's API proves: it is asked again where it cannot answer just now."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from chaos.faults.condition import Condition
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.platforms.kubernetes.client.asking import ask_with_retries


class ClusterCondition(Condition):
    """A condition that the API proves and ends. A missing answer is neither a proof nor an end.

    Its evidence is the ``shown`` proof, where the API can answer just now: the harness looks again otherwise.
    """

    @abstractmethod
    def shown(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof that it holds, by the API. Raises ApiError."""

    @abstractmethod
    def over(self, job: Job, victim: Victim) -> bool:
        """Return whether the API says that it no longer holds. Raises ApiError."""

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof just before the end.

        Nobody looks again then, so the API is asked until it answers.
        """
        return ask_with_retries(lambda: self.shown(job, victim))

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether it has ended, by the API's word."""
        return ask_with_retries(lambda: self.over(job, victim))
