"""Injecting faults, with evidence: each fires once, and counts only when the kernel or the rank itself says so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.base.rank_sets import named
from chaos.base.registry import package_of
from chaos.base.wait import DeadlineExpired, Patience
from chaos.faults.kind import FaultKind, FaultMissed, Lacking, Lasting, Victim, shows_when_let_go
from chaos.heal.undo import CannotUndo, Undone, healable
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.ascend.machine import ThisMachine
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.hangs import HANG
from chaos.plan.model import PlannedFault
from chaos.plan.sides import SUSPENSION, comes_back
from chaos.platforms.nodes import NodesJob
from chaos.run.inject.lasting import LastingFaults
from chaos.run.inject.triggers import HANDLER, Known, armed_points, fires, log_texts, too_early, waiting_for
from chaos.run.launch.channel import AtBarrier, Connection
from chaos.run.launch.desks import Desks
from chaos.run.progress import Recorder

NO_RANK = -1
"""In place of a rank, of a process beside the ranks."""


class Injection:
    """The fault schedule of one attempt.

    A fault goes from *armed* to *landed* or *missed*, once. Ranks held for it are let go afterwards; those that the
    fault has ended cannot go anywhere.
    """

    def __init__(
        self,
        faults: tuple[PlannedFault, ...],
        kinds: Mapping[str, FaultKind],
        *,
        history: Recorder,
        ledger: Ledger,
        attempt: str,
        patience: Patience,
        records: Path,
        storage: Path | None = None,
        ports: Mapping[str, int] = MappingProxyType({}),
        undo: Callable[[UndoStep], Undone] | None = None,
    ) -> None:
        self._open = {fault.id: fault for fault in faults}
        self._kinds = kinds
        self._history = history
        self._ledger = ledger
        self._attempt = attempt
        self._patience = patience
        self._records = records
        self._storage = storage
        self._ports = ports
        self._held: dict[str, dict[int, Connection]] = {}
        self._made: list[PlannedFault] = []
        self.known = Known()
        self.suspended: set[int] = set()
        self.desks = Desks()
        self.lasting = LastingFaults(history, ledger, attempt, patience.clock, undo)
        self.texts = [text for fault in faults for text in log_texts(fault)]
        for fault in faults:
            package = package_of("faults", fault.kind)  # whoever judges the run elsewhere may lack it
            origin: dict[str, Any] = {} if package is None else {"package": package}
            history.record(
                "fault.armed", attempt=attempt, fault=fault.id, kind=fault.kind, ranks=list(fault.ranks), **origin
            )

    @property
    def waiting(self) -> str:
        """Faults that have neither landed nor been missed, in words; empty when there are none."""
        return "; ".join(f"fault {fault.id} waits for {waiting_for(fault)}" for fault in self._open.values())

    def armed_for(self, rank: int) -> list[dict[str, Any]]:
        """What the agent of a rank must hold it at; faults that have fired are not among it."""
        return [
            {"fault": fault.id, "step": step, "phase": phase}
            for fault in self._open.values()
            if rank in fault.ranks
            for step, phase in armed_points(fault)
        ]

    def hold(self, message: AtBarrier) -> None:
        """A rank has reached an armed point. It is let go if the fault has fired already, or is not meant yet."""
        if message.fault not in self._open:
            message.connection.answer({"message": "go"})
            return
        point = (None if message.phase.startswith(HANDLER) else message.step, message.phase)
        if too_early(self._open[message.fault], point, self.known):
            message.connection.answer({"message": "later"})
            return
        self.known.held.setdefault(message.fault, {}).setdefault(point, set()).add(message.rank)
        self._held.setdefault(message.fault, {})[message.rank] = message.connection

    def inject_due(self, job: Job, ranks: Mapping[int, ProcessIdentity]) -> None:
        """Make every fault whose trigger holds now, and end those that have lasted long enough."""
        for fault in list(self._open.values()):
            if fires(fault, self.known):
                self.lasting.look(job, at_once=True)
                self._fire(fault, job, ranks)
        self.lasting.end_due(job)
        self.known.healed |= self.lasting.healed

    def miss_rest(self, reason: str) -> None:
        """The job has ended: what has not landed by now never will."""
        for fault in list(self._open.values()):
            self._miss(fault, f"{reason}; the fault still waited for {waiting_for(fault)}")

    def record_unhealable(self) -> None:
        """Faults that leave nothing to put back are healed when the job has been ended."""
        undoable = {step.fault for step in self._ledger.read().steps}
        for fault in self._made:
            if fault.id not in undoable:
                self._history.record(
                    "fault.healed", attempt=self._attempt, fault=fault.id, how="nothing to put back: the job was ended"
                )

    def _fire(self, fault: PlannedFault, job: Job, ranks: Mapping[int, ProcessIdentity]) -> None:
        kind = self._kinds[fault.kind]
        missing = [rank for rank in fault.ranks if rank not in ranks]
        if missing:
            self._miss(fault, f"no process of {named(missing)} was found")
            return
        victims = [self._victim(fault, rank, ranks[rank], job) for rank in fault.ranks]
        if fault.role is not None:
            beside = [one.identity for one in job.processes() if one.role == fault.role]
            if len(beside) != 1:
                self._miss(fault, f"there is not one {fault.role} to be hit, but {len(beside)}")
                return
            victims = [self._victim(fault, NO_RANK, beside[0], job)]
        steps: list[UndoStep] = []
        seen: dict[int, tuple[int, dict[str, Any]]] = {}
        try:
            for step in healable(kind.undo_steps(fault.id, victims)):
                steps.append(self._ledger.record(step))
            self._made.append(fault)
            for victim in victims:
                self._act(fault, kind, job, victim)
            if shows_when_let_go(kind):
                self._answer_held(fault)
            for victim in victims:
                seen[victim.rank] = self._await_evidence(fault, kind, job, victim)
            evidence = [self._as_evidence(fault, victim, seen[victim.rank][1]) for victim in victims]
        except (FaultMissed, CannotUndo, PlatformError, LookupError, ValueError, OSError, DeadlineExpired) as error:
            if isinstance(kind, Lasting):
                self.lasting.abandon(fault, kind, victims, steps)
            self._miss(fault, str(error))
            return
        if (kind.effect == SUSPENSION or fault.effect == HANG) and not comes_back(fault):
            self.suspended.update(fault.ranks)
        self.known.landed.add(fault.id)
        self._history.record(
            "fault.landed",
            attempt=self._attempt,
            fault=fault.id,
            kind=fault.kind,
            ranks=list(fault.ranks),
            step=evidence[0]["barrier"]["step"] if evidence[0]["barrier"] else None,
            phase=evidence[0]["barrier"]["phase"] if evidence[0]["barrier"] else None,
            evidence=evidence,
        )
        if isinstance(kind, Lasting):
            self.lasting.add(fault, kind, victims, steps, seen)
        else:
            self.lasting.hold(fault, kind, victims)
        self._let_go(fault)

    def _act(self, fault: PlannedFault, kind: FaultKind, job: Job, victim: Victim) -> None:
        self._history.record(
            "fault.injecting",
            attempt=self._attempt,
            rank=None if fault.role is not None else victim.rank,
            pid=victim.identity.pid,
            fault=fault.id,
            kind=fault.kind,
            signal=None if kind.signal is None else int(kind.signal),
            **({"target_rank": victim.rank} if fault.role is None else {"target_role": fault.role}),
            start_time=victim.identity.start_time,
        )
        kind.inject(job, victim)

    def _await_evidence(
        self, fault: PlannedFault, kind: FaultKind, job: Job, victim: Victim
    ) -> tuple[int, dict[str, Any]]:
        """When it was looked at (ns), and the evidence. Faults that last are looked at meanwhile."""

        def look() -> tuple[int, dict[str, Any]] | None:
            self.lasting.look(job)
            now = self._patience.clock.mono()
            shown = kind.evidence(job, victim)
            return None if shown is None else (now, shown)

        lacking = functools.partial(kind.lacking, victim) if isinstance(kind, Lacking) else ""
        return self._patience(f"evidence of fault {fault.id}", look, lacking)

    def _as_evidence(self, fault: PlannedFault, victim: Victim, shown: dict[str, Any]) -> dict[str, Any]:
        return {
            **({"rank": victim.rank} if fault.role is None else {"rank": None, "role": fault.role}),
            "pid": victim.identity.pid,
            **shown,
            "barrier": self._barrier_of(fault, victim.rank),
        }

    def _barrier_of(self, fault: PlannedFault, rank: int) -> dict[str, Any] | None:
        for (step, phase), ranks in self.known.held.get(fault.id, {}).items():
            if rank in ranks:
                return {"step": step, "phase": phase}
        return None

    def _miss(self, fault: PlannedFault, reason: str) -> None:
        self._history.record("fault.missed", attempt=self._attempt, fault=fault.id, kind=fault.kind, reason=reason)
        self._let_go(fault)

    def _let_go(self, fault: PlannedFault) -> None:
        del self._open[fault.id]
        self._answer_held(fault)

    def _answer_held(self, fault: PlannedFault) -> None:
        for connection in self._held.pop(fault.id, {}).values():
            connection.answer({"message": "go"})

    def _victim(self, fault: PlannedFault, rank: int, identity: ProcessIdentity, job: Job) -> Victim:
        record = self._records / f"{self._attempt}-rank_{rank}-{identity.pid}.jsonl"
        held = self._held.get(fault.id, {})

        def answer(message: dict[str, Any]) -> None:
            held.pop(rank).answer(message)  # popped: it is answered once

        return Victim(
            rank,
            identity,
            record,
            answer if rank in held else None,
            storage=self._storage,
            fault=fault.id,
            ranks=fault.ranks,
            parameters=fault.parameters,
            tell_controller=self.desks.tell_controller,
            tell_worker=functools.partial(self.desks.tell_worker, rank),
            place=job.place(identity) if isinstance(job, NodesJob) else {},
            ports=self._ports,
            machine=job.machine(identity) if isinstance(job, NodesJob) else ThisMachine(),
        )
