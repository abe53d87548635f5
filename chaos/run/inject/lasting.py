"""Faults that last until the harness ends them: while the job goes on, or with its launch.

Just before the end each fault is observed again, since anything may have reverted it; the observation is in
``fault.ending``.
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
"""How long a fault whose steps are undone may still be visible."""


@dataclass
class _ActiveFault:
    """A fault under way. ``until`` is on the monotonic clock, in nanoseconds; ``asked``: its end has been requested.

    ``reported``: the errors of its observation, each text once. ``looks`` has the last observation of each rank while
    the fault's carrier existed: its time (ns) and its result. ``look_at`` is the time of the next one.
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
class _HeldFault:
    """A fault that only the teardown ends, by undoing its steps."""

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
        self._under: list[_ActiveFault] = []
        self._held: list[_HeldFault] = []
        self.healed: set[str] = set()

    def add(
        self,
        fault: PlannedFault,
        kind: Lasting,
        victims: list[Victim],
        steps: list[UndoStep],
        landed: dict[int, tuple[int, dict[str, Any]]] | None = None,
    ) -> None:
        """Add a fault that has landed; ``steps`` are its steps in the ledger.

        ``landed`` is its evidence by rank, with the time of the observation (ns): the first look.
        """
        began = self._clock.mono()
        until = began + int(max(kind.lasts(victim) for victim in victims) * 1e9)
        active_fault = _ActiveFault(fault, kind, victims, steps, began, until, looks=dict(landed or {}))
        self._under.append(active_fault)
        for victim in victims:
            with self._noting(active_fault):
                kind.note_landing(victim)

    def hold(self, fault: PlannedFault, kind: FaultKind, victims: list[Victim]) -> None:
        """Add a landed fault that only the teardown ends. It is observed before the end, where its kind allows it."""
        if isinstance(kind, StillShown):
            self._held.append(_HeldFault(fault, kind, victims))

    def abandon(self, fault: PlannedFault, kind: Lasting, victims: list[Victim], steps: list[UndoStep]) -> None:
        """End a fault that has not landed: it may have been made all the same, and nobody else would end it."""
        self._end(_ActiveFault(fault, kind, victims, steps, 0, 0))

    def end_due(self, job: Job) -> None:
        """End the faults whose time is over, and record the ones that have ended."""
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
        """Look at the faults that end with a process or a node: nothing is left to see once the carrier has ended.

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
        """Ask for the end of all remaining faults; their undo steps show whether it comes.

        A fault whose steps are undone by the request is healed, unless it is still seen to hold. The steps of other
        faults stay open for the teardown. All faults are observed before any is ended.
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

    def _ask(self, active_fault: _ActiveFault, evidence: list[dict[str, Any]] | None = None) -> None:
        active_fault.asked = True
        self._record_ending(active_fault, evidence)
        self._end(active_fault)

    def _record_ending(self, active_fault: _ActiveFault | _HeldFault, evidence: list[dict[str, Any]] | None) -> None:
        shown: dict[str, Any] = {} if evidence is None else {"evidence": evidence}
        self._history.record("fault.ending", attempt=self._attempt, fault=active_fault.fault.id, **shown)

    def _at_last(self, active_fault: _ActiveFault | _HeldFault, job: Job) -> list[dict[str, Any]] | None:
        """Return the result of ``_still`` for a fault that the teardown ends, also where a remote helper is lost."""
        try:
            return self._still(active_fault, job)
        except HelperLost as error:
            self._unseen(active_fault, error)
            return []

    def _still(self, active_fault: _ActiveFault | _HeldFault, job: Job) -> list[dict[str, Any]] | None:
        """Return the observation of each rank just before the fault's end; None for kinds without an observation.

        For a rank with the fault that has ended before: its end (``ended``), and the last look (``looked``, ns).
        """
        if not isinstance(active_fault.kind, StillShown):
            return None
        evidence = []
        for victim in active_fault.victims:
            shown: dict[str, Any] | None = None
            with self._noting(active_fault):
                if active_fault.kind.gone(job, victim):
                    looked, looked_evidence = active_fault.looks.get(victim.rank, (None, {}))
                    shown = {**looked_evidence, "ended": True, "looked": looked}
                else:
                    shown = active_fault.kind.still(job, victim)
            evidence.append({"rank": victim.rank, "pid": victim.identity.pid, **(shown or {})})
        return evidence

    def _end(self, active_fault: _ActiveFault) -> None:
        if active_fault.kind.ends_by_undo:
            for step in reversed(active_fault.steps):
                self._end_by_undo(active_fault, step)
            return
        for victim in active_fault.victims:
            with self._noting(active_fault):
                active_fault.kind.end(victim)

    def _may_end(self, active_fault: _ActiveFault, job: Job) -> bool:
        """Return whether the fault may be ended; a rank without any observation does not prevent it."""
        may = True
        for victim in active_fault.victims:
            with self._noting(active_fault):
                may = active_fault.kind.may_end(job, victim) and may
        return may

    def _has_ended(self, active_fault: _ActiveFault, job: Job) -> bool:
        """Return whether the fault is seen to have ended.

        An invisible fault has not ended: it is looked for again, and the undo steps end it at last.
        """
        with self._noting(active_fault):
            return all(active_fault.kind.ended(job, victim) for victim in active_fault.victims)
        return False

    def _ends_now(self, active_fault: _ActiveFault, job: Job) -> bool:
        """Return whether it ends in a moment, as its undone steps say; their word counts where nothing can be seen."""

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
    def _noting(self, active_fault: _ActiveFault | _HeldFault) -> Iterator[None]:
        """Record what goes wrong with a rank that dies under a fault, once, as a fact of the history.

        The loss of a remote helper is no such fact: nothing would be known about its node any more.
        """
        try:
            yield
        except HelperLost:
            raise
        except (FaultMissed, PlatformError, LookupError, ValueError, OSError) as error:
            self._unseen(active_fault, error)

    def _unseen(self, active_fault: _ActiveFault | _HeldFault, error: Exception) -> None:
        if str(error) not in active_fault.reported:
            active_fault.reported.add(str(error))
            why = f"{type(error).__name__}: {error}"
            self._history.record("fault.unseen", attempt=self._attempt, fault=active_fault.fault.id, why=why)

    def _end_by_undo(self, active_fault: _ActiveFault, step: UndoStep) -> None:
        """Undo a step. A failing step stays open, and the teardown tries it again."""
        if self._undo is None:
            return
        undone = self._undo(step)
        active_fault.undone.append(undone)
        if not undone.ok:
            self._history.record("undo.failed", fault=active_fault.fault.id, step=step.id, why=undone.how)
