"""How a fault is made, in a run and in an attached job: undo steps on disk, the act, then its evidence.

:mod:`chaos.run.inject.injection` and :mod:`chaos.attach.inject` compose these pieces, each in its own order over the
targets. The differences are parameters: the holder of the targets, the form in which undo steps name them, the longest
wait for the evidence, and the additional fields of the record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.base.wait import Patience
from chaos.faults.kind import FaultKind, Victim
from chaos.heal.undo import healable
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.protocol import Job
from chaos.run.inject.fault_record import FaultRecord


def as_made(step: UndoStep) -> UndoStep:
    """Return the undo step in the form that its kind gives it: the target carries the run's identity."""
    return step


@dataclass(frozen=True)
class FaultSequence:
    """One fault on its way from *armed* to *landed* or *missed*.

    Args:
        kind: the kind that makes it.
        job: holds the targets: it signals them, and reports their state.
        ledger: takes the undo steps.
        record: takes the events.
        patience: how long the evidence of one target may take.
        called: the fault's name in the deadline of the evidence.
        steps: its undo steps on disk.
    """

    kind: FaultKind
    job: Job
    ledger: Ledger
    record: FaultRecord
    patience: Patience
    called: str
    steps: list[UndoStep] = field(default_factory=list)

    def write_undo(self, fault: str, victims: list[Victim], form: Callable[[UndoStep], UndoStep] = as_made) -> None:
        """Put the fault's undo steps on disk, before it is made.

        The kind makes the steps for ``fault``; ``form`` turns each into its form in the ledger. A step that an earlier
        call has written counts for these targets too. Raises CannotUndo where nothing here could undo a step.
        """
        known = {step.id for step in self.steps}
        # The form may name another action: that action must be possible here.
        for step in healable(form(step) for step in self.kind.undo_steps(fault, victims)):
            if step.id not in known:
                self.steps.append(self.ledger.record(step))

    def act(self, victim: Victim, target: Mapping[str, Any], *, rank: int | None, **more: Any) -> None:
        """Record that the fault is being made in one target, then make it. ``target`` names it in the record."""
        self.record.injecting(self.kind, victim, target, rank=rank, **more)
        self.kind.inject(self.job, victim)

    def await_evidence(
        self, victim: Victim, meanwhile: Callable[[], None] = lambda: None
    ) -> tuple[int, dict[str, Any]]:
        """Wait for the evidence of one target; return the time of the look (ns), and the evidence.

        ``meanwhile`` is called before each look. Raises DeadlineExpired, and the errors of the kind.
        """

        def look() -> tuple[int, dict[str, Any]] | None:
            meanwhile()
            now = self.patience.clock.mono()
            shown = self.kind.evidence(self.job, victim)
            return None if shown is None else (now, shown)

        return self.patience(f"evidence of {self.called}", look, functools.partial(self.kind.lacking, victim))
