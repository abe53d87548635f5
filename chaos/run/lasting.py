"""Faults that last: they end while the job goes on, at the harness's word, and count as healed once they have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.faults.kind import Lasting, Victim
from chaos.history.clock import Clock
from chaos.history.ledger import Ledger, UndoStep
from chaos.plan.model import PlannedFault
from chaos.platforms.base import Job
from chaos.run.progress import Recorder
from chaos.run.undo import Undone


@dataclass
class _Under:
    """A fault under way. ``until`` is on the monotonic clock, in nanoseconds; ``asked``: its end has been asked for."""

    fault: PlannedFault
    kind: Lasting
    victims: list[Victim]
    steps: list[UndoStep]
    began: int
    until: int
    asked: bool = False


class LastingFaults:
    """Those of one attempt that have landed and not ended. ``undo`` undoes a step, and closes it in the ledger."""

    def __init__(
        self,
        history: Recorder,
        ledger: Ledger,
        attempt: str,
        clock: Clock,
        undo: Callable[[UndoStep], Undone] | None = None,
    ) -> None:
        self._undo = undo
        self._history = history
        self._ledger = ledger
        self._attempt = attempt
        self._clock = clock
        self._under: list[_Under] = []
        self.healed: set[str] = set()

    def add(self, fault: PlannedFault, kind: Lasting, victims: list[Victim], steps: list[UndoStep]) -> None:
        """A fault has landed; ``steps`` are its steps in the ledger."""
        began = self._clock.mono()
        until = began + int(max(kind.lasts(victim) for victim in victims) * 1e9)
        for victim in victims:
            kind.landed(victim)
        self._under.append(_Under(fault, kind, victims, steps, began, until))

    def end_due(self, job: Job) -> None:
        """End those whose time is over, and record those that have ended."""
        for one in list(self._under):
            over = self._clock.mono() >= one.until
            if not one.asked and over and all(one.kind.may_end(job, victim) for victim in one.victims):
                self._ask(one)
            if one.asked and all(one.kind.ended(job, victim) for victim in one.victims):
                self._under.remove(one)
                how = f"ended after {(self._clock.mono() - one.began) / 1e9:.3f} s"
                for step in one.steps:
                    if not _by_undo(one.kind):
                        self._ledger.close(step.id, how)
                self._history.record("fault.healed", attempt=self._attempt, fault=one.fault.id, how=how)
                self.healed.add(one.fault.id)

    def end_all(self) -> None:
        """Ask for the end of all that are left; whether it comes is for the undo steps to see."""
        for one in self._under:
            if not one.asked:
                self._ask(one)
        self._under = []

    def _ask(self, one: _Under) -> None:
        one.asked = True
        self._history.record("fault.ending", attempt=self._attempt, fault=one.fault.id)
        if _by_undo(one.kind):
            for step in reversed(one.steps):
                self._end_by_undo(one.fault, step)
            return
        for victim in one.victims:
            one.kind.end(victim)

    def _end_by_undo(self, fault: PlannedFault, step: UndoStep) -> None:
        """One that fails stays open, and the teardown tries it again."""
        undone = None if self._undo is None else self._undo(step)
        if undone is not None and not undone.ok:
            self._history.record("undo.failed", fault=fault.id, step=step.id, why=undone.how)


def _by_undo(kind: Lasting) -> bool:
    return bool(getattr(kind, "ends_by_undo", False))
