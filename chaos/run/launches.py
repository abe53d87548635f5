"""One launch of the job under one session: start it, follow it, and put back what it and its faults have left."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from chaos.faults.kind import FaultKind
from chaos.history.clock import Clock
from chaos.history.writer import HistoryWriter
from chaos.jobs.kind import JobKind, Launch
from chaos.plan.model import PlannedFault
from chaos.plan.traits import JobTraits
from chaos.platforms.base import Job, Platform
from chaos.registry import registry
from chaos.run.attempt import Attempt, Watch
from chaos.run.injection import Injection
from chaos.run.interrupts import uninterrupted
from chaos.run.mishaps import noticing_mishaps
from chaos.run.progress import Watched
from chaos.run.reaped import ReapedByLauncher
from chaos.run.session import Session, put_back_faults
from chaos.run.setup import launch_spec, write_agent_configuration
from chaos.run.storage import prepare_faults, storage_of
from chaos.run.wait import DeadlineExpired, Patience

_SETTLE_SECONDS = 5.0


@dataclass(frozen=True)
class Launches:
    """Launches one job of a kind on a platform. ``digest_steps`` must have digests although they are thinned out."""

    kind: JobKind
    traits: JobTraits
    platform: Platform
    sdk: str
    clock: Clock
    digest_steps: tuple[int, ...]

    def attempt(self, session: Session, name: str, faults: tuple[PlannedFault, ...], *, resume: bool) -> bool:
        """Launch the job and follow it to its end; False when a deadline ran out, which is recorded."""
        with noticing_mishaps(session.history, name, self.clock, session.owned.path):
            return self._attempt(session, name, faults, resume=resume)

    def _attempt(self, session: Session, name: str, faults: tuple[PlannedFault, ...], *, resume: bool) -> bool:
        kinds: dict[str, FaultKind] = {kind: registry("faults").load(kind) for kind in {one.kind for one in faults}}
        storage = storage_of(session.owned.path / "job", self.traits)
        prepare_faults(faults, kinds, storage, session.owned.ledger)
        job = self._launch(session, name, resume=resume)
        injection = Injection(
            faults,
            kinds,
            history=Watched(session.history, session.progress),
            ledger=session.owned.ledger,
            attempt=name,
            patience=Patience(session.scenario.deadlines.land, self.clock, (session.deadline,)),
            records=session.owned.path / "history",
            storage=storage,
        )
        limits = session.scenario.deadlines
        watch = Watch(session.history, session.progress, self.clock, limits, session.deadline)
        attempt = Attempt(name, session.plan.ranks, job, session.channel, injection, session.owned.path, watch)
        try:
            attempt.follow()
            attempt.note_leftovers(_SETTLE_SECONDS)
        except DeadlineExpired as expired:
            record_deadline(session.history, expired, attempt=name)
            return False
        finally:
            with uninterrupted():
                injection.miss_rest("the attempt was ended")
                injection.lasting.end_all()
                put_back_faults(session, running=True)
                job.stop(limits.stop)
                put_back_faults(session)
                injection.record_unhealable()
                attempt.record_late_exits()
                session.history.record("attempt.end", attempt=name)
        return True

    def _launch(self, session: Session, name: str, *, resume: bool) -> Job:
        run_dir = session.owned.path
        logs = run_dir / "logs" / name
        logs.mkdir(parents=True)
        launch = Launch(
            session.scenario,
            session.scenario_directory,
            run_dir / "job",
            logs,
            resume,
            session.ports,
            Path(sys.executable),
            self.sdk,
        )
        if not resume:
            self.kind.prepare(launch)
        configuration = write_agent_configuration(
            session.private,
            token=session.owned.token,
            attempt=name,
            history=run_dir / "history",
            extensions=self.kind.extensions,
            scenario=session.scenario,
            digest_steps=self.digest_steps,
            memory=session.memory,
        )
        command = self.kind.command(launch)
        spec = launch_spec(
            command,
            token=session.owned.token,
            attempt=name,
            configuration=configuration,
            python=launch.python,
            environment=dict(os.environ),
            scenario=session.scenario,
            cwd=launch.directory,
            log=logs / "msrun.log",
            cores=session.cores,
            told=ReapedByLauncher(run_dir / "history", name),
        )
        session.progress.event(
            session.history.record("attempt.start", attempt=name, argv=list(command.argv), cwd=str(launch.directory))
        )
        return self.platform.start(spec)


def record_deadline(history: HistoryWriter, expired: DeadlineExpired, attempt: str | None = None) -> None:
    """Record that a wait has come to its deadline."""
    history.record(
        "deadline.expired", attempt=attempt, name=expired.name, seconds=expired.seconds, detail=expired.detail
    )
