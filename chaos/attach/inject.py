"""A fault in a job that runs already: made, proved, held, undone and recorded like one of a run. The job goes on.

Nothing is planned and nothing judged: it is told whether the fault landed, and whether it was undone.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.checks.injection.proof_registry import why_unproven
from chaos.faults.checkpoints.running_checkpoint import own_directories
from chaos.faults.kind import FaultKind, FaultMissed, StillShown, Victim
from chaos.heal.adopted import adopted_step
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext, healable, undo_step
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.machine.running.adopted import AdoptedJob
from chaos.machine.running.running import JobProcess, RunningJob
from chaos.run.interrupts import interruptible_once, uninterrupted
from chaos.run.made_with import machine_facts, own_code, recorded_command
from chaos.run.prepare.versions import versions
from chaos.run.progress import Progress, Recorder, Watched
from chaos.store.directory import ADOPTED, INJECTED_FILE, RunDirectory, create_run, update_run, write_json

ATTEMPT = "adopted"
"""The attempt in the history: the launch that was found."""

_EVIDENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.1

_AS_LANDED = ("group", "limit")
"""What must be the same in the evidence as long as a fault holds: another one is somebody else's."""

Outcome = Literal["landed", "not landed", "unknown"]


@dataclass(frozen=True)
class Hit:
    """What came of the fault in one rank. ``evidence`` is the proof that it landed, ``why`` the reason otherwise."""

    process: JobProcess
    outcome: Outcome
    evidence: dict[str, Any] | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**plain(self.process), "outcome": self.outcome, "evidence": self.evidence, "why": self.why}


@dataclass(frozen=True)
class Injected:
    """An injection that has come to its end. ``undone`` is None where there was nothing to undo.

    ``left`` says what could not be undone, with the reason. ``interrupted``: before the time asked for was over.
    """

    run_dir: Path
    kind: str
    hits: tuple[Hit, ...]
    undone: bool | None
    left: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def outcome(self) -> Outcome:
        """ "landed" only when it did in every rank that was meant."""
        outcomes = {hit.outcome for hit in self.hits}
        return "landed" if outcomes == {"landed"} else "unknown" if "unknown" in outcomes else "not landed"

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "run": self.run_dir.name,
            "directory": str(self.run_dir),
            "fault": self.kind,
            "outcome": self.outcome,
            "undone": self.undone,
            "left": list(self.left),
            "interrupted": self.interrupted,
            "hits": [hit.to_json() for hit in self.hits],
        }


def plain(process: JobProcess) -> dict[str, Any]:
    """A process as data. ``start_time`` is in clock ticks since boot: with the PID it tells the process for good."""
    container = process.container
    return {
        "role": process.role,
        "rank": process.rank,
        "pid": process.pid,
        "start_time": process.identity.start_time,
        "command": list(process.cmdline),
        "container": None if container is None else {"id": container.id, "pid": container.pid},
    }


def inject(
    kind: FaultKind,
    job: RunningJob,
    chosen: Sequence[JobProcess],
    held: AdoptedJob,
    *,
    seconds: float | None,
    reports: Path,
    progress: Progress,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    arguments: Sequence[str] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> Injected:
    """Make the fault in the chosen ranks of a job, whose processes ``held`` holds, and put back what can be.

    One that lasts does so for ``seconds``; None: until Ctrl-C, or until the ranks have ended. How to undo it is on disk
    before it is made. Whatever happens the job goes on afterwards: after a SIGKILL of this process, by ``chaos heal``.
    ``parameters`` are the kind's own, ``arguments`` those of the command line, for the record.
    """
    owned = create_run(reports, f"inject-{kind.name}", clock=clock)
    with owned.lock:
        told = {
            "scheduler": job.scheduler,
            "size": job.size,
            "processes": [plain(one) for one in job.processes],
            "directories": sorted({str(path) for one in job.processes for path in own_directories(one)}),
        }
        made = {"command": recorded_command(arguments), "machine": machine_facts(), "code": own_code()}
        update_run(owned.path, versions=versions(), **made, **{ADOPTED: told})
        path = owned.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=owned.token, clock=clock) as history:
            recorder = Watched(history, progress)
            recorder.record("run.start", run=owned.run, adopted=True)
            _record_found(recorder, job)
            result = _Injection(kind, owned, held, recorder, clock, parameters).run(chosen, seconds)
            recorder.record("run.end", interrupted=result.interrupted, error=None)
        write_json(owned.path / INJECTED_FILE, result.to_json())
    return result


@dataclass
class _Chosen:
    """A rank that is to be hit. ``missed`` says so where nobody could undo it there, so that it was not made."""

    process: JobProcess
    victim: Victim
    missed: Hit | None = None


class _Injection:
    def __init__(
        self,
        kind: FaultKind,
        owned: RunDirectory,
        held: AdoptedJob,
        history: Recorder,
        clock: Clock,
        parameters: Mapping[str, Any],
    ) -> None:
        self._kind = kind
        self._parameters = dict(parameters)
        self._owned = owned
        self._held = held
        self._history = history
        self._clock = clock
        self._fault = kind.name
        self._left: list[str] = []
        self._undone = 0
        # A kind that must not last long is not to do so in one rank while its evidence from another is waited for.
        own = getattr(kind, "parameters", {}).get("seconds")
        self._patience = min(_EVIDENCE_SECONDS, own.most if own is not None and own.required else _EVIDENCE_SECONDS)

    def run(self, chosen: Sequence[JobProcess], seconds: float | None) -> Injected:
        hits: list[Hit] = []
        interrupted = False
        self._record("fault.armed", ranks=[process.rank for process in chosen])
        with self._put_back():
            try:
                unfit = {process.pid: why for process in chosen if (why := self._unfit(process)) is not None}
                hits += [Hit(one, "not landed", why=unfit[one.pid]) for one in chosen if one.pid in unfit]
                victims = [_Chosen(one, self._victim(one)) for one in chosen if one.pid not in unfit]
                for one in victims:  # all steps first: a fault in two ranks is undone as a whole
                    one.missed = self._write_down(one)
                for one in victims:
                    hits.append(self._hit(one.process, one.victim) if one.missed is None else one.missed)
                self._record_outcome(hits)
                if isinstance(self._kind, StillShown):
                    landed = {hit.process.pid: hit for hit in hits if hit.outcome == "landed"}
                    early = self._hold(self._kind, landed, {one.process.pid: one.victim for one in victims}, seconds)
                    hits = [replace(hit, why=early.get(hit.process.pid, hit.why)) for hit in hits]
            except KeyboardInterrupt:
                # Ctrl-C is how a fault that lasts ends without a time.
                interrupted = seconds is not None or len(hits) < len(chosen)
        told = {hit.process.pid for hit in hits}
        hits += [
            Hit(one, "unknown", why="interrupted before there was evidence") for one in chosen if one.pid not in told
        ]
        hits.sort(key=lambda hit: chosen.index(hit.process))
        undone = not self._left if self._undone or self._left else None
        return Injected(self._owned.path, self._kind.name, tuple(hits), undone, tuple(self._left), interrupted)

    def _unfit(self, process: JobProcess) -> str | None:
        """Why the fault cannot be made in this process as it is, or could not be told from what is there already."""
        state = self._held.state(process.identity)
        if state in ("gone", "zombie"):
            return f"{process.identity} has ended before"
        if state == "stopped" and self._kind.signal == signal.SIGSTOP:
            return f"{process.identity} is stopped already, by somebody else, and stays so"
        return None

    def _write_down(self, one: _Chosen) -> Hit | None:
        """Put the steps on disk that undo the fault in a rank. Of one that lies on the machine there is one for all."""
        known = {step.id for step in self._owned.ledger.open_steps()}
        assert one.process.rank is not None
        try:
            for step in healable(self._kind.undo_steps(one.victim.fault, [one.victim])):
                if step.id not in known:
                    own = replace(step, fault=self._fault)
                    self._owned.ledger.record(adopted_step(own, one.process.rank))
        except (FaultMissed, CannotUndo, LookupError, OSError) as error:
            return Hit(one.process, "not landed", why=str(error))
        return None

    def _hit(self, process: JobProcess, victim: Victim) -> Hit:
        try:
            self._record(
                "fault.injecting",
                rank=process.rank,
                pid=process.pid,
                signal=None if self._kind.signal is None else int(self._kind.signal),
                target_rank=process.rank,
                start_time=process.identity.start_time,
                parameters=self._parameters,
            )
            self._kind.inject(self._held, victim)
            shown = wait_for(
                f"evidence of {self._fault}",
                lambda: self._kind.evidence(self._held, victim),
                seconds=self._patience,
                clock=self._clock,
            )
        except DeadlineExpired as expired:
            return Hit(process, "unknown", why=str(expired))
        except (FaultMissed, LookupError, ValueError, OSError) as error:
            status = self._held.exit_status(process.identity)
            unsaid = status is not None and not status.known
            why = f"{error}; {self._held.told_by[process.identity]}" if unsaid else str(error)
            return Hit(process, "unknown" if unsaid else "not landed", why=why)
        if (unproven := why_unproven(self._kind.name, shown)) is not None:
            return Hit(process, "unknown", why=unproven)
        by_state = ", by the state of the process" if self._kind.signal is not None else ""
        own = getattr(self._kind, "said_by", f"the kernel{by_state}")
        said_by = self._held.told_by.get(process.identity, own)
        return Hit(process, "landed", {**shown, "said_by": said_by})

    def _record_outcome(self, hits: Sequence[Hit]) -> None:
        evidence = [
            {"rank": hit.process.rank, "pid": hit.process.pid, **(hit.evidence or {}), "barrier": None}
            for hit in hits
            if hit.outcome == "landed"
        ]
        if evidence:
            ranks = [hit.process.rank for hit in hits if hit.outcome == "landed"]
            self._record("fault.landed", ranks=ranks, step=None, phase=None, evidence=evidence)
        for hit in hits:
            if hit.outcome != "landed":
                where = f"rank {hit.process.rank}, PID {hit.process.pid}"
                self._record("fault.missed", reason=f"{where}: {hit.outcome}: {hit.why}", outcome=hit.outcome)
            status = self._held.exit_status(hit.process.identity)
            if status is not None:
                self._record(
                    "rank.exit", rank=hit.process.rank, pid=hit.process.pid, signal=status.signal, code=status.code
                )

    def _hold(
        self,
        kind: StillShown,
        landed: Mapping[int, Hit],
        victims: Mapping[int, Victim],
        seconds: float | None,
    ) -> dict[int, str]:
        """Wait until the time is over, or the fault holds in no rank any more; tells by PID where it held less."""
        began = self._clock.mono()
        early: dict[int, str] = {}
        while len(early) < len(landed) and (left := self._left_of(seconds, began)) > 0:
            for pid, hit in landed.items():
                if pid in early or (how := self._over(kind, hit, victims[pid])) is None:
                    continue
                since = "it had been stopped" if self._stops else "the fault had landed"
                early[pid] = f"{how} {self._since(began):.1f} s after {since}"
                self._record("fault.ending", rank=hit.process.rank, pid=pid, why=early[pid])
            self._clock.sleep(min(_LOOK_SECONDS, left))
        return early

    def _left_of(self, seconds: float | None, began: int) -> float:
        return _LOOK_SECONDS if seconds is None else seconds - self._since(began)

    @property
    def _stops(self) -> bool:
        return self._kind.signal == signal.SIGSTOP

    def _over(self, kind: StillShown, hit: Hit, victim: Victim) -> str | None:
        """How the fault has ended in a rank before it was undone; None while it holds."""
        state = self._held.state(hit.process.identity)
        if self._stops:
            return None if state == "stopped" else f"{'continued' if state == 'alive' else 'ended'} by somebody else"
        if state in ("gone", "zombie") and not getattr(self._kind, "outlives_ranks", False):
            return "the rank has ended"
        try:
            shown = kind.still(self._held, victim)
        except (FaultMissed, LookupError, OSError) as error:
            return f"it did not show any more ({error})"
        landed = hit.evidence or {}
        if shown is None or any(shown[name] != landed.get(name) for name in _AS_LANDED if name in shown):
            return "it did not show any more: somebody else has taken it back"
        return None

    def _since(self, began: int) -> float:
        return (self._clock.mono() - began) / 1e9

    @contextmanager
    def _put_back(self) -> Iterator[None]:
        """Undo every open step at the end of the block, whatever has ended it."""
        with interruptible_once():
            try:
                yield
            finally:
                with uninterrupted():
                    self._undo()

    def _undo(self) -> None:
        """What cannot be recorded (a full disk) is undone all the same, and told afterwards."""
        context = UndoContext(self._owned.token, self._clock, adopted=True)
        unrecorded: list[Exception] = []
        for step in self._owned.ledger.open_steps():
            undone = undo_step(self._owned.ledger, step, UNDO_ACTIONS, context)
            if undone.unrecorded is not None:
                unrecorded.append(undone.unrecorded)
            try:
                if undone.ok:
                    self._undone += 1
                    self._record("fault.healed", how=undone.how)
                else:
                    self._left.append(f"{step.id}: {undone.how}")
                    self._record("undo.failed", step=step.id, why=undone.how)
            except HistoryWriteError as error:
                unrecorded.append(error)
        if unrecorded:
            raise unrecorded[0]

    def _victim(self, process: JobProcess) -> Victim:
        assert process.rank is not None
        # There is no agent, so there is no record of one.
        record = self._owned.path / "history" / f"{ATTEMPT}-rank_{process.rank}-{process.pid}.jsonl"
        # Each rank has its own, since the ranks of one host are bound to different cores; the machine's memory is one.
        fault = self._fault if getattr(self._kind, "of_machine", False) else f"{self._fault}-{process.pid}"
        return Victim(
            process.rank,
            process.identity,
            record,
            fault=fault,
            ranks=(process.rank,),
            parameters=self._parameters,
            run=self._owned.token,
        )

    def _record(self, event: str, *, rank: int | None = None, pid: int | None = None, **data: Any) -> None:
        about = {"fault": self._fault, "kind": self._kind.name} if event != "rank.exit" else {}
        self._history.record(event, attempt=ATTEMPT, rank=rank, pid=pid, **about, **data)


def _record_found(history: Recorder, job: RunningJob) -> None:
    """Who is in the job, by PID and start time."""
    for process in job.processes:
        event = "rank.found" if process.role == "rank" else "launcher.found"
        told = plain(process)
        del told["rank"], told["pid"]
        history.record(event, attempt=ATTEMPT, rank=process.rank, pid=process.pid, ppid=process.ppid, **told)
