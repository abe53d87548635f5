"""Faults that last until the harness ends them: while the job goes on, or with its launch.

Just before that each is looked at again, since anything may have taken it back: what was seen is in ``fault.ending``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.faults.behaviours import Lasting, StillShown
from chaos.faults.condition import FOR_GOOD
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.heal.undo import Undone
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.protocol import HelperLost, Job, PlatformError
from chaos.plan.parts.fault import PlannedFault
from chaos.run.progress import Recorder

_END_SECONDS = 5.0
"""How long a fault may still be seen whose steps are undone."""


@dataclass
class _Under:
    """A fault under way. ``until`` is on the monotonic clock, in nanoseconds; ``asked``: its end has been asked for.

    ``reported``: what could not be seen of it, each text once. ``looks`` has the last one at each rank while what it
    lies on was there: when (ns), and what was seen. ``look_at`` is when the next one is due.
    """

    fault: PlannedFault
    kind: Lasting
    victims: list[Victim]
    steps: list[UndoStep]
    began: int
    until: int
    asked: bool = False
    reported: set[str] = field(default_factory=set)
    undone: list[Undone] = field(default_factory=list)
    looks: dict[int, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    look_at: int = 0


@dataclass
class _Held:
    """A fault that stays until the teardown undoes its steps, and has no other end."""

    fault: PlannedFault
    kind: StillShown
    victims: list[Victim]
    reported: set[str] = field(default_factory=set)
    looks: dict[int, tuple[int, dict[str, Any]]] = field(default_factory=dict)


class LastingFaults:
    """The faults of one attempt that have landed and not ended. ``undo`` undoes a step, and closes it in the ledger."""

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
        self._held: list[_Held] = []
        self.healed: set[str] = set()

    def add(
        self,
        fault: PlannedFault,
        kind: Lasting,
        victims: list[Victim],
        steps: list[UndoStep],
        landed: dict[int, tuple[int, dict[str, Any]]] | None = None,
    ) -> None:
        """A fault has landed; ``steps`` are its steps in the ledger.

        ``landed`` is its evidence by rank, and when that was seen (ns): the first look.
        """
        began = self._clock.mono()
        until = began + int(max(kind.lasts(victim) for victim in victims) * 1e9)
        active_fault = _Under(fault, kind, victims, steps, began, until, looks=dict(landed or {}))
        self._under.append(active_fault)
        for victim in victims:
            with self._noting(active_fault):
                kind.landed(victim)

    def hold(self, fault: PlannedFault, kind: FaultKind, victims: list[Victim]) -> None:
        """A fault has landed that only the teardown ends. It is looked at before, where its kind can be."""
        if isinstance(kind, StillShown):
            self._held.append(_Held(fault, kind, victims))

    def abandon(self, fault: PlannedFault, kind: Lasting, victims: list[Victim], steps: list[UndoStep]) -> None:
        """A fault has not landed. It may have been made all the same, and nobody else would end it."""
        self._end(_Under(fault, kind, victims, steps, 0, 0))

    def end_due(self, job: Job) -> None:
        """End those whose time is over, and record those that have ended."""
        self.look(job)
        for active_fault in list(self._under):
            over = self._clock.mono() >= active_fault.until
            if not active_fault.asked and over and self._may_end(active_fault, job):
                self._ask(active_fault, self._still(active_fault, job))
            if active_fault.asked and self._has_ended(active_fault, job):
                self._under.remove(active_fault)
                how = f"ended after {(self._clock.mono() - active_fault.began) / 1e9:.3f} s"
                for step in active_fault.steps:
                    if not active_fault.kind.ends_by_undo:
                        self._ledger.close(step.id, how)
                self._history.record("fault.healed", attempt=self._attempt, fault=active_fault.fault.id, how=how)
                self.healed.add(active_fault.fault.id)

    def look(self, job: Job, *, at_once: bool = False) -> None:
        """Look at those that end with a process or a node: of what has ended nothing shows any more.

        ``at_once``: another fault is about to be made, which may end it.
        """
        for active_fault in self._under:
            kind, now = active_fault.kind, self._clock.mono()
            if (
                active_fault.asked
                or active_fault.until - active_fault.began < FOR_GOOD * 1e9
                or not isinstance(kind, StillShown)
            ):
                continue
            if kind.look_every is None:
                continue
            if now < active_fault.look_at and not at_once:
                continue
            active_fault.look_at = now + int(kind.look_every * 1e9)
            for victim in active_fault.victims:
                with self._noting(active_fault):
                    if not kind.gone(job, victim):
                        active_fault.looks[victim.rank] = (now, kind.still(job, victim) or {})

    def end_all(self, job: Job) -> None:
        """Ask for the end of all that are left; whether it comes is for the undo steps to see.

        One whose steps are undone by that is healed, unless it is seen to hold still. The steps of others are open
        still, for the teardown. All are looked at before any is ended.
        """
        ending = [
            (active_fault, self._at_last(active_fault, job)) for active_fault in self._under if not active_fault.asked
        ]
        for held in self._held:
            self._record_ending(held, self._at_last(held, job))
        for active_fault, evidence in ending:
            self._ask(active_fault, evidence)
        for active_fault in self._under:
            if (
                active_fault.undone
                and all(undone.ok for undone in active_fault.undone)
                and self._ends_now(active_fault, job)
            ):
                how = "; ".join(undone.how for undone in active_fault.undone)
                self._history.record("fault.healed", attempt=self._attempt, fault=active_fault.fault.id, how=how)
                self.healed.add(active_fault.fault.id)
        self._under, self._held = [], []

    def _ask(self, active_fault: _Under, evidence: list[dict[str, Any]] | None = None) -> None:
        active_fault.asked = True
        self._record_ending(active_fault, evidence)
        self._end(active_fault)

    def _record_ending(self, active_fault: _Under | _Held, evidence: list[dict[str, Any]] | None) -> None:
        shown: dict[str, Any] = {} if evidence is None else {"evidence": evidence}
        self._history.record("fault.ending", attempt=self._attempt, fault=active_fault.fault.id, **shown)

    def _at_last(self, active_fault: _Under | _Held, job: Job) -> list[dict[str, Any]] | None:
        """Return the same as ``_still``, of what the teardown ends. It ends it also where a remote helper is lost."""
        try:
            return self._still(active_fault, job)
        except HelperLost as error:
            self._unseen(active_fault, error)
            return []

    def _still(self, active_fault: _Under | _Held, job: Job) -> list[dict[str, Any]] | None:
        """What shows of each rank, just before the end, that the fault holds. None of kinds that are not looked at.

        Of a rank on which it lay and which has ended before: that (``ended``), and the last look (``looked``, ns).
        """
        if not isinstance(active_fault.kind, StillShown):
            return None
        evidence = []
        for victim in active_fault.victims:
            shown: dict[str, Any] | None = None
            with self._noting(active_fault):
                if active_fault.kind.gone(job, victim):
                    looked, seen = active_fault.looks.get(victim.rank, (None, {}))
                    shown = {**seen, "ended": True, "looked": looked}
                else:
                    shown = active_fault.kind.still(job, victim)
            evidence.append({"rank": victim.rank, "pid": victim.identity.pid, **(shown or {})})
        return evidence

    def _end(self, active_fault: _Under) -> None:
        if active_fault.kind.ends_by_undo:
            for step in reversed(active_fault.steps):
                self._end_by_undo(active_fault, step)
            return
        for victim in active_fault.victims:
            with self._noting(active_fault):
                active_fault.kind.end(victim)

    def _may_end(self, active_fault: _Under, job: Job) -> bool:
        """Return a rank that nothing can be said of keeps it from nothing."""
        may = True
        for victim in active_fault.victims:
            with self._noting(active_fault):
                may = active_fault.kind.may_end(job, victim) and may
        return may

    def _has_ended(self, active_fault: _Under, job: Job) -> bool:
        """What cannot be seen has not been seen to end: it is looked for again, and the undo steps end it at last."""
        with self._noting(active_fault):
            return all(active_fault.kind.ended(job, victim) for victim in active_fault.victims)
        return False

    def _ends_now(self, active_fault: _Under, job: Job) -> bool:
        """Return whether it ends in a moment, as its undone steps say. What nobody can see is left to their word."""

        def over() -> bool:
            try:
                with self._noting(active_fault):
                    return all(active_fault.kind.ended(job, victim) for victim in active_fault.victims)
            except HelperLost as error:
                self._unseen(active_fault, error)
            return True

        try:
            return wait_for("heal", over, seconds=_END_SECONDS, clock=self._clock)
        except DeadlineExpired:
            self._unseen(active_fault, FaultMissed(f"its steps are undone, and it was seen {_END_SECONDS:g} s later"))
            return False

    @contextmanager
    def _noting(self, active_fault: _Under | _Held) -> Iterator[None]:
        """What goes wrong with a rank that dies under a fault is a fact of the history, and told once.

        A remote helper that is lost is none: nothing would be known of its node any more.
        """
        try:
            yield
        except HelperLost:
            raise
        except (FaultMissed, PlatformError, LookupError, ValueError, OSError) as error:
            self._unseen(active_fault, error)

    def _unseen(self, active_fault: _Under | _Held, error: Exception) -> None:
        if str(error) not in active_fault.reported:
            active_fault.reported.add(str(error))
            why = f"{type(error).__name__}: {error}"
            self._history.record("fault.unseen", attempt=self._attempt, fault=active_fault.fault.id, why=why)

    def _end_by_undo(self, active_fault: _Under, step: UndoStep) -> None:
        """One that fails stays open, and the teardown tries it again."""
        if self._undo is None:
            return
        undone = self._undo(step)
        active_fault.undone.append(undone)
        if not undone.ok:
            self._history.record("undo.failed", fault=active_fault.fault.id, step=step.id, why=undone.how)
