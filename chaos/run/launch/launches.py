"""One launch of the job under one session: start it, follow it, and undo everything that it and its faults left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import Clock
from chaos.base.growth import in_words
from chaos.base.wait import DeadlineExpired, Patience
from chaos.checks.run.events import NOT_RESTARTED, PORT_TAKEN
from chaos.faults.kind import FaultKind
from chaos.heal.undo import UNDO_ACTIONS, undo_step
from chaos.history.writer import HistoryWriter
from chaos.jobs.kind import Command, JobKind, Launch
from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import NODE_VARIABLE
from chaos.machine.job.protocol import Job, LaunchSpec, Platform
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.traits import JobTraits
from chaos.platforms.nodes import NodePlatform, Nodes
from chaos.platforms.nodes_job import NodesJob, places
from chaos.run.inject.storage import prepare_faults, storage_of
from chaos.run.interrupts import uninterrupted
from chaos.run.launch.attempt import STARTING, Attempt, JobFailed, Watch
from chaos.run.launch.exit_statuses import ReapedByLauncher
from chaos.run.launch.node_clocks import NodeClocks
from chaos.run.launch.ports_taken import PortTaken, taken_by_others
from chaos.run.launch.setup import (
    AGENTS,
    SECRET,
    agent_configuration,
    configuration_name,
    launch_spec,
    write_agent_configuration,
)
from chaos.run.progress import Watched
from chaos.run.session import MEETING, Session, put_back_faults, undo_context

_SETTLE_SECONDS = 5.0
_NEXT = "resume"
"""The attempt of the ranks that go on, whoever has started them."""

if TYPE_CHECKING:
    from chaos.run.inject.injection import Injection


@dataclass(frozen=True)
class Launches:
    """Launches one job of a kind on a platform, with faults of these kinds.

    ``digest_steps`` must have digests although they are thinned out.
    """

    kind: JobKind
    kinds: Mapping[str, FaultKind]
    traits: JobTraits
    platform: Platform | NodePlatform
    sdk: str
    clock: Clock
    digest_steps: tuple[int, ...]

    def attempt(
        self,
        session: Session,
        name: str,
        faults: tuple[PlannedFault, ...],
        *,
        resume: bool,
        before_next: Callable[[], None] | None = None,
    ) -> bool:
        """Launch the job and follow it to its end; False when a deadline ran out, which is recorded.

        ``before_next`` is given where the job's own supervisor starts the ranks again: their next processes are the
        attempt ``resume`` of the same launch, and wait until ``before_next`` has been called.
        """
        kinds = {fault.kind: self.kinds[fault.kind] for fault in faults}
        storage = storage_of(session.owned.path / "job", self.traits)
        prepare_faults(faults, kinds, storage, session.owned.ledger)
        job = self._launch(session, name, resume=resume)
        injection = self._injection(session, name, faults, kinds)
        limits = session.scenario.deadlines
        nodes = () if session.nodes is None else session.nodes.all()
        clocks = NodeClocks(session.history, name, nodes, self.clock)
        own = not self.traits.own_script and not resume
        watch = Watch(session.history, session.progress, self.clock, limits, session.deadline, clocks.look, own)
        if any(recovery.damaged for recovery in session.plan.response.recoveries):
            watch = replace(watch, replaced=_damage_recorder(session, storage))
        if before_next is not None:
            watch = replace(watch, joined=lambda: self._prepare_next(session, name), follower=_NEXT)
        attempt = Attempt(name, session.plan.layout.ranks, job, session.channel, injection, session.owned.path, watch)
        try:
            attempt.follow()
            if before_next is not None:
                session.history.record("attempt.end", attempt=name)
                before_next()
                attempt = self._next(session, attempt, job, injection, watch)
                attempt.follow()
            attempt.note_leftovers(_SETTLE_SECONDS)
        except DeadlineExpired as expired:
            if expired.name == STARTING:
                _refuse_taken_ports(session, name, str(expired))
            record_deadline(session.history, expired, attempt=attempt.name)
            attempt.take_stacks()
            return False
        except JobFailed as failed:
            _refuse_taken_ports(session, name, str(failed))
            # Before the teardown, which ends ranks as well: a rank that had ended until here did so by itself.
            session.history.record("job.failed", attempt=attempt.name, reason=str(failed))
            if attempt.name != name and not attempt.ranks:
                session.history.record(NOT_RESTARTED, attempt=attempt.name, reason=str(failed))
                return True
            raise
        finally:
            with uninterrupted():
                clocks.again()
                injection.miss_rest("the attempt was ended")
                injection.lasting.end_all(job)
                put_back_faults(session, running=True)
                _record_unended(session.history, attempt.name, job.stop(limits.stop))
                attempt.stacks.remove_empty_files()
                put_back_faults(session)
                injection.record_unhealable()
                attempt.record_late_exits()
                session.history.record("attempt.end", attempt=attempt.name)
        return True

    def _injection(
        self, session: Session, name: str, faults: tuple[PlannedFault, ...], kinds: Mapping[str, FaultKind]
    ) -> Injection:
        from chaos.run.inject.injection import Injection  # the job starts meanwhile

        return Injection(
            faults,
            kinds,
            history=Watched(session.history, session.progress),
            ledger=session.owned.ledger,
            attempt=name,
            patience=Patience(session.scenario.deadlines.land, self.clock, (session.deadline,)),
            records=session.owned.path / "history",
            storage=storage_of(session.owned.path / "job", self.traits),
            ports={word: session.ports[which] for word, which in self.traits.ports.items()},
            undo=lambda step: undo_step(
                session.owned.ledger,
                step,
                UNDO_ACTIONS,
                undo_context(session.owned, self.clock, () if session.nodes is None else session.nodes.all()),
            ),
        )

    def _prepare_next(self, session: Session, name: str) -> None:
        """Let every process that the job starts from here on join as a rank of the next attempt.

        All ranks have read their configuration by now; a process that replaces one of them reads this one.
        """
        logs = session.owned.path / "logs" / _NEXT
        logs.mkdir(exist_ok=True)
        settings = self._agent_settings(session, logs)
        if session.nodes is None:
            path = session.private / configuration_name(name)
            new = path.with_suffix(".new")
            new.write_text(agent_configuration(session.private, attempt=_NEXT, **settings), "utf-8")
            new.replace(path)
            return
        for node, place in places(session.nodes.ready(), session.plan.layout.ranks, session.private / MEETING):
            text = agent_configuration(node.private, attempt=_NEXT, place=place, **settings)
            node.helper.place(str(node.private), {configuration_name(name): text})

    def _next(self, session: Session, before: Attempt, job: Job, injection: Injection, watch: Watch) -> Attempt:
        """Return the attempt of the processes that the job's own supervisor starts after the first ones."""
        session.progress.event(session.history.record("attempt.start", attempt=_NEXT, by="the job's own supervisor"))
        for hello in before.followers:
            session.channel.messages.put(hello)
        watch = replace(watch, joined=lambda: None, follower="", own_script=False)
        ranks = session.plan.layout.ranks
        return Attempt(_NEXT, ranks, job, session.channel, injection, session.owned.path, watch)

    def _agent_settings(self, session: Session, logs: Path) -> dict[str, Any]:
        """Return the settings of an attempt's agents, besides its name and their place."""
        return {
            "token": session.owned.token,
            "history": session.owned.path / "history",
            # The modules that they replace are imported before a callback is built.
            "extensions": self.kind.extensions if session.scenario.job.loading == "path" else (),
            "scenario": session.scenario,
            "digest_steps": self.digest_steps,
            "memory": session.memory,
            "stacks": logs,
        }

    def _launch(self, session: Session, name: str, *, resume: bool) -> Job:
        run_dir = session.owned.path
        logs = run_dir / "logs" / name
        logs.mkdir(parents=True)
        launch = Launch(
            session.scenario,
            session.scenario_directory.resolve(),
            run_dir / "job",
            logs,
            resume,
            session.ports,
            self.kind.own_python(session.scenario, session.scenario_directory) or _python_of(session),
            self.sdk,
        )
        if not resume:
            self.kind.prepare(launch)
        settings = self._agent_settings(session, logs)
        if session.nodes is not None:
            return self._launch_on(session.nodes, session, name, launch, settings)
        assert not isinstance(self.platform, NodePlatform)
        configuration = write_agent_configuration(session.private, attempt=name, **settings)
        command = self.kind.command(launch)
        reaped = ReapedByLauncher(run_dir / "history", name)
        spec = self._spec(session, name, launch, command, configuration, logs / "msrun.log", reaped)
        session.progress.event(
            session.history.record("attempt.start", attempt=name, argv=list(command.argv), cwd=str(launch.directory))
        )
        return self.platform.start(spec)

    def _launch_on(self, nodes: Nodes, session: Session, name: str, launch: Launch, settings: dict[str, Any]) -> Job:
        """Start the launchers, one on each node, after the clock of each node is measured and recorded."""
        ready = nodes.ready()
        secret = (session.private / SECRET).read_text("ascii")
        specs, clocks = [], NodeClocks(session.history, name, ready, self.clock)
        for node, place in places(ready, session.plan.layout.ranks, session.private / MEETING):
            at = replace(launch, place=place)
            text = agent_configuration(node.private, attempt=name, place=place, **settings)
            configuration = node.private / configuration_name(name)
            node.helper.place(str(node.private), {SECRET: secret, configuration.name: text})
            node.helper.listen(str(node.private / AGENTS))
            reaped = ReapedByLauncher(session.owned.path / "history", name, node.number)
            log = launch.logs / ("msrun.log" if node.number == 0 else f"msrun-node_{node.number}.log")
            command = self.kind.command(at)
            specs.append(self._spec(session, name, at, command, configuration, log, reaped))
            clocks.record(node)
        session.progress.event(
            session.history.record("attempt.start", attempt=name, argv=list(specs[0].argv), cwd=str(launch.directory))
        )
        return NodesJob(ready, specs, self.clock)

    def _spec(
        self,
        session: Session,
        name: str,
        launch: Launch,
        command: Command,
        configuration: Path,
        log: Path,
        collected_exit: ReapedByLauncher,
    ) -> LaunchSpec:
        if launch.place is not None:
            command = replace(command, environment={**command.environment, NODE_VARIABLE: str(launch.place.node)})
        return launch_spec(
            command,
            token=session.owned.token,
            attempt=name,
            configuration=configuration,
            python=launch.python,
            scenario=session.scenario,
            cwd=launch.directory,
            log=log,
            cores=session.cores,
            collected_exit=collected_exit,
        )


def _damage_recorder(session: Session, storage: Path | None) -> Callable[[], None]:
    """Return the call that records damaged checkpoints before ranks that are started again look for them."""
    from chaos.run.before_resume import record_damage_within  # now, not within the recovery's time

    return partial(record_damage_within, session.owned.path, storage, session.history)


def _python_of(session: Session) -> Path:
    """Return the interpreter of the platform: the harness's own, or that of the nodes."""
    return Path(sys.executable) if session.nodes is None else session.nodes.python


def _refuse_taken_ports(session: Session, name: str, why: str) -> None:
    """Raise PortTaken where a job that did not start had ports on which another process listens.

    Jobs of several nodes have ports of those nodes.
    """
    taken = [] if session.nodes is not None else taken_by_others(session.ports, session.owned.token)
    if taken:
        refused = PortTaken(why, taken)
        listed = [port.to_json() for port in taken]
        session.history.record(PORT_TAKEN, attempt=name, reason=str(refused), ports=listed)
        raise refused


def _record_unended(history: HistoryWriter, attempt: str, ended: Ended) -> None:
    """Record the processes that the teardown could not end, each with the reason."""
    if ended.remaining:
        left = [
            {"pid": process.pid, "node": process.identity.node, "cmdline": list(process.cmdline), "why": why}
            for process, why in ended.remaining
        ]
        history.record("job.unended", attempt=attempt, processes=left)


def record_deadline(history: HistoryWriter, expired: DeadlineExpired, attempt: str | None = None) -> None:
    """Record that a wait has come to its deadline."""
    history.record(
        "deadline.expired",
        attempt=attempt,
        name=expired.name,
        seconds=float(expired.seconds),
        limit=in_words(expired.seconds),
        detail=expired.detail,
    )
