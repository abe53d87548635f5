"""Injects faults, with evidence: each fires once, and counts only when the kernel or the rank itself confirms it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.base.rank_sets import named
from chaos.base.registry import package_of
from chaos.base.wait import DeadlineExpired, Patience
from chaos.evidence.injection.cut_off import comes_back
from chaos.faults.behaviours import Lasting
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.heal.undo import CannotUndo, Undone
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.ascend.machine import ThisMachine
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.trigger_words import HANDLER, waiting_for
from chaos.platforms.nodes_job import NodesJob
from chaos.run.inject.fault_record import FaultRecord, evidence_of
from chaos.run.inject.lasting import LastingFaults
from chaos.run.inject.sequence import FaultSequence
from chaos.run.inject.triggers import Known, armed_points, fires, log_texts, too_early
from chaos.run.launch.channel import AtBarrier, Connection
from chaos.run.launch.control_endpoints import ControlEndpoints
from chaos.run.progress import Recorder

NO_RANK = -1
"""Stands for the rank of a process beside the ranks."""


class Injection:
    """The fault schedule of one attempt.

    A fault goes from *armed* to *landed* or *missed*, once. Ranks held for it are released afterwards, except ranks
    that the fault has ended.
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
        self.endpoints = ControlEndpoints()
        self.lasting = LastingFaults(history, ledger, attempt, patience.clock, undo)
        self.texts = [text for fault in faults for text in log_texts(fault)]
        for fault in faults:
            package = package_of("faults", fault.kind)  # a machine that judges the run elsewhere may lack it
            origin: dict[str, Any] = {} if package is None else {"package": package}
            self._record_of(fault).armed(fault.ranks, **origin)

    @property
    def waiting(self) -> str:
        """Faults that have neither landed nor been missed, in words; empty when there are none."""
        return "; ".join(f"fault {fault.id} waits for {waiting_for(fault)}" for fault in self._open.values())

    def armed_for(self, rank: int) -> list[dict[str, Any]]:
        """Return the points at which the agent must hold a rank, without points of faults that have fired."""
        return [
            {"fault": fault.id, "step": step, "phase": phase}
            for fault in self._open.values()
            if rank in fault.ranks
            for step, phase in armed_points(fault)
        ]

    def hold(self, message: AtBarrier) -> None:
        """Hold a rank that has reached an armed point; release it if the fault has fired already, or is not due yet."""
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
        """Make every fault whose trigger holds now, and end faults that have lasted long enough."""
        for fault in list(self._open.values()):
            if fires(fault, self.known):
                self.lasting.look(job, at_once=True)
                self._fire(fault, job, ranks)
        self.lasting.end_due(job)
        self.known.healed |= self.lasting.healed

    def miss_rest(self, reason: str) -> None:
        """Record the faults that have not landed when the job ends: they never will."""
        for fault in list(self._open.values()):
            self._miss(fault, f"{reason}; the fault still waited for {waiting_for(fault)}")

    def record_unhealable(self) -> None:
        """Record faults that leave nothing to put back as healed: the job has been ended."""
        undoable = {step.fault for step in self._ledger.read().steps}
        for fault in self._made:
            if fault.id not in undoable:
                self._history.record(
                    "fault.healed", attempt=self._attempt, fault=fault.id, how="nothing to undo: the job was ended"
                )

    def _fire(self, fault: PlannedFault, job: Job, ranks: Mapping[int, ProcessIdentity]) -> None:
        victims = self._victims(fault, job, ranks)
        if isinstance(victims, str):
            self._miss(fault, victims)
            return
        sequence = self._sequence(fault, job)
        kind = sequence.kind
        sightings: dict[int, tuple[int, dict[str, Any]]] = {}
        try:
            sequence.write_undo(fault.id, victims)
            self._made.append(fault)
            for victim in victims:
                target = {"target_rank": victim.rank} if fault.role is None else {"target_role": fault.role}
                sequence.act(victim, target, rank=None if fault.role is not None else victim.rank)
            if kind.shows_when_let_go:
                self._answer_held(fault)
            for victim in victims:
                # Lasting faults are observed meanwhile.
                sightings[victim.rank] = sequence.await_evidence(victim, functools.partial(self.lasting.look, job))
            evidence = [self._as_evidence(fault, victim, sightings[victim.rank][1]) for victim in victims]
        except (FaultMissed, CannotUndo, PlatformError, LookupError, ValueError, OSError, DeadlineExpired) as error:
            if isinstance(kind, Lasting) and kind.lasts_in(fault.parameters):
                self.lasting.abandon(fault, kind, victims, sequence.steps)
            self._miss(fault, str(error))
            return
        if (kind.effect.suspends or fault.effect.hangs) and not comes_back(fault):
            self.suspended.update(fault.ranks)
        self.known.landed.add(fault.id)
        sequence.record.landed(fault.ranks, evidence)
        if isinstance(kind, Lasting) and kind.lasts_in(fault.parameters):
            self.lasting.add(fault, kind, victims, sequence.steps, sightings)
        else:
            self.lasting.hold(fault, kind, victims)
        self._let_go(fault)

    def _sequence(self, fault: PlannedFault, job: Job) -> FaultSequence:
        kind, called = self._kinds[fault.kind], f"fault {fault.id}"
        return FaultSequence(kind, job, self._ledger, self._record_of(fault), self._patience, called)

    def _record_of(self, fault: PlannedFault) -> FaultRecord:
        return FaultRecord(self._history, self._attempt, fault.id, fault.kind)

    def _victims(self, fault: PlannedFault, job: Job, ranks: Mapping[int, ProcessIdentity]) -> list[Victim] | str:
        """Return the targets of a fault, or why it has none."""
        missing = [rank for rank in fault.ranks if rank not in ranks]
        if missing:
            return f"no process of {named(missing)} was found"
        if fault.role is None:
            return [self._victim(fault, rank, ranks[rank], job) for rank in fault.ranks]
        beside = [process.identity for process in job.processes() if process.role == fault.role]
        if len(beside) != 1:
            return f"there is not one {fault.role} to be hit, but {len(beside)}"
        return [self._victim(fault, NO_RANK, beside[0], job)]

    def _as_evidence(self, fault: PlannedFault, victim: Victim, shown: dict[str, Any]) -> dict[str, Any]:
        target = {"rank": victim.rank} if fault.role is None else {"rank": None, "role": fault.role}
        return evidence_of(target, victim.identity.pid, shown, self._barrier_of(fault, victim.rank))

    def _barrier_of(self, fault: PlannedFault, rank: int) -> dict[str, Any] | None:
        for (step, phase), ranks in self.known.held.get(fault.id, {}).items():
            if rank in ranks:
                return {"step": step, "phase": phase}
        return None

    def _miss(self, fault: PlannedFault, reason: str) -> None:
        self._record_of(fault).missed(reason)
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
            tell_controller=self.endpoints.tell_controller,
            tell_worker=functools.partial(self.endpoints.tell_worker, rank),
            place=job.place(identity) if isinstance(job, NodesJob) else {},
            ports=self._ports,
            machine=job.machine(identity) if isinstance(job, NodesJob) else ThisMachine(),
        )
