"""A fault in an attached job: made, proved, held, undone and recorded like a fault of a run. The job goes on.

The pieces are those of a run (:mod:`chaos.run.inject.sequence`). Three things differ: the ranks are held by
descriptors, undo steps identify a rank by its process, and each rank is hit and proved separately. Nothing is planned
and nothing is judged: the record says whether the fault landed, and whether it was undone.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.attach.hold import Holding
from chaos.attach.outcome import Hit, Injected, plain
from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired, Patience
from chaos.checks.injection.proof_registry import why_unproven
from chaos.faults.behaviours import StillShown
from chaos.faults.checkpoints.running_checkpoint import own_directories
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.heal.undo import CannotUndo, UndoContext, Undone
from chaos.heal.undo_of_families import attached_form
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.linux.process import has_ended
from chaos.machine.running.adopted import AdoptedJob
from chaos.machine.running.running import JobProcess, RunningJob
from chaos.run.inject.fault_record import FaultRecord, evidence_of
from chaos.run.inject.put_back import put_back
from chaos.run.inject.sequence import FaultSequence
from chaos.run.interrupts import interruptible_once, uninterrupted
from chaos.run.made_with import machine_facts, own_code, recorded_command
from chaos.run.prepare.versions import versions
from chaos.run.progress import Progress, Recorder, Watched
from chaos.store.directory import ADOPTED, INJECTED_FILE, RunDirectory, create_run, update_run, write_json

ATTEMPT = "adopted"
"""The attempt in the history: the launch that was running."""

_EVIDENCE_SECONDS = 30.0


def inject(
    kind: FaultKind,
    job: RunningJob,
    chosen: Sequence[JobProcess],
    adopted_job: AdoptedJob,
    *,
    seconds: float | None,
    reports: Path,
    progress: Progress,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    arguments: Sequence[str] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> Injected:
    """Make the fault in the chosen ranks of a job, whose processes ``adopted_job`` holds, and undo what can be undone.

    A lasting fault lasts for ``seconds``; None: until Ctrl-C, or until the ranks have ended. Its undo steps are on disk
    before it is made. Whatever happens, the job goes on afterwards: after a SIGKILL of this process, by ``chaos heal``.
    ``parameters`` are the kind's own, ``arguments`` the command line's, for the record.
    """
    owned = create_run(reports, f"inject-{kind.name}", clock=clock)
    with owned.lock:
        attached = {
            "scheduler": job.scheduler,
            "master": job.master,
            "run_id": job.run_id,
            "size": job.size,
            "processes": [plain(process) for process in job.processes],
            "directories": sorted({str(path) for process in job.processes for path in own_directories(process)}),
        }
        made = {"command": recorded_command(arguments), "machine": machine_facts(), "code": own_code()}
        update_run(owned.path, versions=versions(), **made, **{ADOPTED: attached})
        path = owned.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=owned.token, clock=clock) as history:
            recorder = Watched(history, progress)
            recorder.record("run.start", run=owned.run, adopted=True)
            _record_found(recorder, job)
            result = _Injection(kind, owned, adopted_job, recorder, clock, parameters).run(chosen, seconds)
            recorder.record("run.end", interrupted=result.interrupted, error=None)
        write_json(owned.path / INJECTED_FILE, result.to_json())
    return result


class _Injection:
    """One fault in the chosen ranks. It is undone at the end, however the injection ends."""

    def __init__(
        self,
        kind: FaultKind,
        owned: RunDirectory,
        adopted_job: AdoptedJob,
        history: Recorder,
        clock: Clock,
        parameters: Mapping[str, Any],
    ) -> None:
        self._kind = kind
        self._parameters = dict(parameters)
        self._owned = owned
        self._held = adopted_job
        self._history = history
        self._clock = clock
        self._fault = kind.name
        self._left: list[str] = []
        self._undone = 0
        self._record = FaultRecord(history, ATTEMPT, self._fault, kind.name)
        # A fault that must not last long must not hold in one rank while the evidence from another is awaited.
        duration = (kind.parameters or {}).get("seconds")
        most = min(
            _EVIDENCE_SECONDS, duration.most if duration is not None and duration.required else _EVIDENCE_SECONDS
        )
        patience = Patience(most, clock)
        self._sequence = FaultSequence(kind, adopted_job, owned.ledger, self._record, patience, self._fault)

    def run(self, chosen: Sequence[JobProcess], seconds: float | None) -> Injected:
        hits: list[Hit] = []
        interrupted = False
        victims = {process.pid: self._victim(process) for process in chosen}
        self._record.armed([process.rank for process in chosen])
        with self._put_back():
            try:
                self._make(chosen, victims, hits)
                self._record_outcome(hits)
                if isinstance(self._kind, StillShown):
                    hits[:] = self._hold(self._kind, hits, victims, seconds)
            except KeyboardInterrupt:
                # Ctrl-C is how a lasting fault without a time ends.
                interrupted = seconds is not None or len(hits) < len(chosen)
        known = {hit.process.pid for hit in hits}
        hits += [
            Hit(process, "unknown", why="interrupted before there was evidence")
            for process in chosen
            if process.pid not in known
        ]
        hits.sort(key=lambda hit: chosen.index(hit.process))
        undone = not self._left if self._undone or self._left else None
        return Injected(self._owned.path, self._kind.name, tuple(hits), undone, tuple(self._left), interrupted)

    def _make(self, chosen: Sequence[JobProcess], victims: Mapping[int, Victim], hits: list[Hit]) -> None:
        """Make the fault in each rank, and add the outcome to ``hits`` as soon as it is known."""
        unfit = {process.pid: why for process in chosen if (why := self._unfit(process)) is not None}
        hits += [Hit(process, "not landed", why=unfit[process.pid]) for process in chosen if process.pid in unfit]
        fit = [process for process in chosen if process.pid not in unfit]
        # All steps first: a fault in two ranks is undone as a whole.
        missed = {process.pid: self._write_down(process, victims[process.pid]) for process in fit}
        for process in fit:
            hits.append(missed[process.pid] or self._hit(process, victims[process.pid]))

    def _unfit(self, process: JobProcess) -> str | None:
        """Return why the fault cannot be made in this process now, or could not be distinguished; None where it can."""
        state = self._held.state(process.identity)
        if has_ended(state):
            return f"{process.identity} has ended before"
        if state == "stopped" and self._kind.signal == signal.SIGSTOP:
            return f"{process.identity} was already stopped by another process, and stays stopped"
        return None

    def _write_down(self, process: JobProcess, victim: Victim) -> Hit | None:
        """Put the undo steps of the fault in a rank on disk. A fault of the machine has one step for all ranks.

        Where the fault could not be undone it is not made: the returned hit says so.
        """
        rank = victim.rank

        def form(step: UndoStep) -> UndoStep:
            return attached_form(replace(step, fault=self._fault), rank)

        try:
            self._sequence.write_undo(victim.fault, [victim], form)
        except (FaultMissed, CannotUndo, LookupError, OSError) as error:
            return Hit(process, "not landed", why=str(error))
        return None

    def _hit(self, process: JobProcess, victim: Victim) -> Hit:
        try:
            self._sequence.act(victim, {"target_rank": process.rank}, rank=process.rank, parameters=self._parameters)
            _, shown = self._sequence.await_evidence(victim)
        except DeadlineExpired as expired:
            return Hit(process, "unknown", why=str(expired))
        except (FaultMissed, LookupError, ValueError, OSError) as error:
            status = self._held.exit_status(process.identity)
            unsaid = status is not None and not status.known
            why = f"{error}; {self._held.status_sources[process.identity]}" if unsaid else str(error)
            return Hit(process, "unknown" if unsaid else "not landed", why=why)
        if (unproven := why_unproven(self._kind.name, shown)) is not None:
            return Hit(process, "unknown", why=unproven)
        by_state = ", by the state of the process" if self._kind.signal is not None else ""
        said_by = self._held.status_sources.get(process.identity, self._kind.evidence_source or f"the kernel{by_state}")
        return Hit(process, "landed", {**shown, "said_by": said_by})

    def _record_outcome(self, hits: Sequence[Hit]) -> None:
        landed = [hit for hit in hits if hit.outcome == "landed"]
        if landed:
            evidence = [evidence_of({"rank": hit.process.rank}, hit.process.pid, hit.evidence or {}) for hit in landed]
            self._record.landed([hit.process.rank for hit in landed], evidence)
        for hit in hits:
            if hit.outcome != "landed":
                where = f"rank {hit.process.rank}, PID {hit.process.pid}"
                self._record.missed(f"{where}: {hit.outcome}: {hit.why}", outcome=hit.outcome)
            status = self._held.exit_status(hit.process.identity)
            if status is not None:
                who = {"rank": hit.process.rank, "pid": hit.process.pid}
                self._history.record("rank.exit", attempt=ATTEMPT, **who, signal=status.signal, code=status.code)

    def _hold(
        self, kind: StillShown, hits: Sequence[Hit], victims: Mapping[int, Victim], seconds: float | None
    ) -> list[Hit]:
        """Hold the fault where it has landed; return the hits, with the reason where it ended early."""
        holding = Holding(kind, self._held, self._record, self._clock)
        landed = {hit.process.pid: (hit, victims[hit.process.pid]) for hit in hits if hit.outcome == "landed"}
        early = holding.wait(landed, seconds)
        return [replace(hit, why=early.get(hit.process.pid, hit.why)) for hit in hits]

    @contextmanager
    def _put_back(self) -> Iterator[None]:
        """Undo every open step at the end of the block, however the block ends."""
        with interruptible_once():
            try:
                yield
            finally:
                with uninterrupted():
                    self._undo()

    def _undo(self) -> None:
        """Undo the open steps of the ledger. Steps that cannot be undone are kept for the report."""

        def record(undone: Undone) -> None:
            if undone.ok:
                self._undone += 1
                self._record.event("fault.healed", how=undone.how)
            else:
                self._left.append(f"{undone.step.id}: {undone.how}")
                self._record.event("undo.failed", step=undone.step.id, why=undone.how)

        context = UndoContext(self._owned.token, self._clock, adopted=True)
        put_back(self._owned.ledger, self._owned.ledger.open_steps(), context, record)

    def _victim(self, process: JobProcess) -> Victim:
        assert process.rank is not None
        # There is no agent, so there is no record of one.
        record = self._owned.path / "history" / f"{ATTEMPT}-rank_{process.rank}-{process.pid}.jsonl"
        # Each rank has its own cores, since the ranks of a host are bound to different cores; the machine's memory is
        # shared.
        fault = self._fault if self._kind.of_machine else f"{self._fault}-{process.pid}"
        return Victim(
            process.rank,
            process.identity,
            record,
            fault=fault,
            ranks=(process.rank,),
            parameters=self._parameters,
            run=self._owned.token,
        )


def _record_found(history: Recorder, job: RunningJob) -> None:
    """Record the job's processes, by PID and start time."""
    for process in job.processes:
        event = "rank.found" if process.role == "rank" else "launcher.found"
        fields = plain(process)
        del fields["rank"], fields["pid"]
        history.record(event, attempt=ATTEMPT, rank=process.rank, pid=process.pid, ppid=process.ppid, **fields)
