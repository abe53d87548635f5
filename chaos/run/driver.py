"""Drives one scenario's cell: baseline, faulted launch, resume, teardown; then the checks judge what was recorded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.rank_sets import named
from chaos.base.refusal import Refused
from chaos.base.wait import Deadline, DeadlineExpired, Patience
from chaos.checks.run.events import CHANGED
from chaos.doctor import INTERFACE, OWN_AGENT, Machine, probe
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.jobs.kind import Simulated
from chaos.machine.ascend.quarantine import node_name
from chaos.machine.hand.client import HandLost
from chaos.machine.job.protocol import Platform
from chaos.machine.leases import Lease, Leases
from chaos.machine.linux.children import subreaper
from chaos.machine.linux.commands import SystemCommands
from chaos.plan import io
from chaos.plan.build import build_plan
from chaos.plan.model import Plan
from chaos.plan.schedule import ABNORMAL, SILENT
from chaos.plan.source import Source
from chaos.platforms.kind import PlatformKind
from chaos.platforms.nodes import NamesNodes, NodePlatform, RecordsHosts
from chaos.run.deadlines import with_deadlines
from chaos.run.interrupts import interruptible
from chaos.run.launch.attempt import JobFailed
from chaos.run.launch.launches import Launches, record_deadline
from chaos.run.launch.ports_taken import PortTaken
from chaos.run.made_with import machine_facts, masked_values, own_code, recorded_command
from chaos.run.open_files import refuse_too_few
from chaos.run.prepare.inputs import InputChanged, Inputs
from chaos.run.prepare.on_platform import named_platform, settings_of
from chaos.run.prepare.prepare import plan_cell, unknown_releases
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.versions import sdk_named, versions
from chaos.run.progress import Progress
from chaos.run.session import Session, open_session
from chaos.run.watch.host_incidents import noticing_mishaps
from chaos.run.watch.quarantine import watching_quarantine
from chaos.scenario.models.scenario import Expect, Scenario
from chaos.store.baseline_key import baseline_key
from chaos.store.baselines import BaselineError, copy_into, find_or_make, why_incomplete
from chaos.store.directory import RunDirectory, create_run, point_latest, update_run

if TYPE_CHECKING:
    from chaos.evidence.checkpoints.saved import SavedKind

_CORES_SECONDS = 4 * 3600.0
_PORT_ATTEMPTS = 3
"""How often a run is made in all where somebody else takes its ports each time."""


@dataclass(frozen=True)
class RunOptions:
    """What the command line decides. ``baseline`` overrides the scenario's; ``cores`` is how many a job may take.

    ``arguments`` are those of the command line as it was given, for the record.
    """

    reports: Path
    baseline: str | None = None
    cores: int | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run: its directory, its verdict, and whether it was interrupted."""

    run_dir: Path
    verdict: str
    interrupted: bool


def run_cell(prepared: Prepared, options: RunOptions, progress: Progress, *, clock: Clock = SYSTEM_CLOCK) -> RunOutcome:
    """Run one cell and judge it.

    Whatever ends the run, its processes are ended and its faults undone first. Raises Refused where this machine lacks
    what it needs, and errors of the harness itself; what the job does wrong becomes the verdict.
    """
    plan = prepared.plan
    if options.baseline is not None:
        plan = replace(plan, equivalence=replace(plan.equivalence, baseline=options.baseline))
    prepared = replace(prepared, plan=plan, cell=with_deadlines(prepared.cell))
    _refuse_if_lacking(prepared.scenario, prepared.needs, prepared.sdk)
    if prepared.platform.own_limits:
        refuse_too_few(prepared.scenario.cluster.ranks)
    leases = Leases()
    wanted = options.cores or len(os.sched_getaffinity(0))
    patience = Patience(_CORES_SECONDS, clock)
    with (
        subreaper(),
        interruptible(),
        _cores_here(prepared.platform, leases, wanted, patience, progress) as cores,
    ):
        return _Runner(prepared, options, progress, clock, leases, cores).run(plan)


def _cores_here(platform: PlatformKind, leases: Leases, wanted: int, patience: Patience, progress: Progress) -> Lease:
    """Cores for the job; none where its ranks run on other machines, whose cores nobody here can lease."""
    if platform.elsewhere:
        return Lease((), [])
    return leases.take_cores(1, up_to=wanted, wait=patience, blocked=progress.note)


def _refuse_if_lacking(scenario: Scenario, needed: Iterable[str], sdk: str) -> None:
    # The stand-in is called in the place of a vendor's package that does not fit.
    needs = {*needed} - ({INTERFACE, OWN_AGENT} if sdk == "standin" else set())
    lacking = [seen for seen in probe(needs, Machine(settings=settings_of(scenario))) if not seen.ok]
    if lacking:
        listed = "".join(f"\n  {seen.need}: {seen.seen}; {seen.advice}" for seen in lacking)
        listed += "\n  what it can run: chaos doctor"
        raise Refused(f"this machine lacks what scenario {scenario.name} needs{listed}")


class _Runner:
    """What one cell and its baseline have in common."""

    def __init__(
        self,
        prepared: Prepared,
        options: RunOptions,
        progress: Progress,
        clock: Clock,
        leases: Leases,
        cores: Lease,
    ) -> None:
        self._loaded = prepared.loaded
        self._cell = prepared.cell
        self._scenario = scenario = prepared.scenario
        self._options = options
        self._progress = progress
        self._clock = clock
        self._leases = leases
        self._cores = cores.numbers
        self._lease = cores
        self._sdk = prepared.sdk
        self._kind = prepared.job
        self._traits = prepared.traits
        self._kinds = prepared.kinds
        self._platform_kind = prepared.platform
        self._platform: Platform | NodePlatform = self._platform_kind.make()
        self._deadline = Deadline("run", scenario.deadlines.run, clock)
        self._versions = versions()
        self._digest_steps: tuple[int, ...] = ()
        self._code = own_code()
        self._planned = prepared.inputs
        self._inputs: Inputs | None = None
        self._changed: InputChanged | None = None
        self._taken: PortTaken | None = None
        self._broken_off: Path | None = None
        self._plan: Plan | None = None

    def run(self, plan: Plan) -> RunOutcome:
        """Run and judge the cell; where somebody else took a port that was chosen for it, again with another port."""
        for again in range(_PORT_ATTEMPTS - 1, -1, -1):
            self._taken = None
            outcome = self._run_once(self._plan or plan)
            if self._taken is None or outcome.interrupted or not again:
                break
            self._progress.note(f"{self._taken}; the run is made again with other ports")
        return outcome

    def _run_once(self, plan: Plan) -> RunOutcome:
        self._digest_steps = digest_steps(plan, self._scenario.job.digest_interval)
        for fault in plan.faults:
            if fault.seed is not None:
                self._progress.note(f"fault {fault.id}: seed {fault.seed} drew {named(fault.ranks)}")
        owned = create_run(self._options.reports, plan.identity.scenario, plan.identity.cell, clock=self._clock)
        self._lease.name_run(str(owned.path))
        with owned.lock:
            self._describe(owned, plan, self._scenario)
            point_latest(self._options.reports, owned.run)
            interrupted = self._record_run(owned, plan, self._scenario)
            # What reads and judges a run is imported when there is something to read: the job starts sooner.
            from chaos.report.analyze import analyze

            result = analyze(owned.path)
        return RunOutcome(owned.path, result.verdict, interrupted)

    def _record_run(self, owned: RunDirectory, plan: Plan, scenario: Scenario) -> bool:
        """Run with a history; returns whether Ctrl-C ended it. Errors of the harness are recorded and raised."""
        interrupted, error = False, None
        path = owned.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=owned.token, clock=self._clock) as history:
            history.record(
                "run.start",
                run=owned.run,
                scenario=plan.identity.scenario,
                cell=plan.identity.cell,
                seed=plan.training.seed,
                plan=io.fingerprint((owned.path / "plan.json").read_bytes()),
                sdk=sdk_named(self._kind.simulated(scenario, self._sdk)),
            )
            try:
                update_run(owned.path, inputs=masked_values(self._begun().begun))
                self._take_baseline(owned, plan.equivalence.baseline)
                plan, scenario = self._completed(owned, plan, scenario, history)
                self._drive(owned, plan, scenario, history)
                from chaos.run.retention import thin_out

                thin_out(owned.path, scenario.keep_checkpoints_mb, history)
            except DeadlineExpired as expired:
                record_deadline(history, expired)
            except BaselineError as failed:
                error = str(failed)
                history.record("baseline.failed", reason=error)
            except PortTaken as taken:
                self._taken = taken
                error = str(taken)
            except InputChanged as changed:
                self._changed = changed
                error = str(changed)
                history.record(CHANGED, reason=error)
            except (JobFailed, HandLost) as failed:
                error = str(failed)
            except KeyboardInterrupt:
                interrupted = True
                if self._broken_off is not None:
                    from chaos.report.reason import BROKEN_OFF, became_of

                    became = became_of(read_history(self._broken_off / "history"))
                    history.record(BROKEN_OFF, run=self._broken_off.name, became=became)
            except BaseException as failure:
                error = f"{type(failure).__name__}: {failure}"
                raise
            finally:
                history.record("run.end", interrupted=interrupted, error=error)
        return interrupted

    def _describe(self, owned: RunDirectory, plan: Plan, scenario: Scenario) -> None:
        (owned.path / "scenario.yaml").write_text(self._loaded.text, "utf-8")
        (owned.path / "plan.json").write_text(io.dumps(plan), "utf-8")
        simulated = [*self._kind.simulated(scenario, self._sdk), *self._simulated_nodes(scenario)]
        update_run(
            owned.path,
            scenario=plan.identity.scenario,
            source=plan.identity.source,
            cell=plan.identity.cell,
            seed=plan.training.seed,
            versions=self._versions,
            platform=scenario.cluster.platform,
            sdk=sdk_named(simulated),
            simulated=[{"part": part.part, "layer": part.layer} for part in simulated],
            command=recorded_command(self._options.arguments),
            variables=masked_values(self._cell.values),
            cores=list(self._cores),
            machine=machine_facts(),
            code=self._code,
            hosts=self._hosts(scenario),
        )

    def _hosts(self, scenario: Scenario) -> list[dict[str, Any]]:
        if not isinstance(self._platform, RecordsHosts):
            return []
        return [dict(host) for host in self._platform.hosts_as_given(scenario, self._loaded.path.parent)]

    def _simulated_nodes(self, scenario: Scenario) -> Iterator[Simulated]:
        if isinstance(self._platform, NodePlatform):
            part = self._platform.simulated(scenario.cluster.nodes)
            if part is not None:
                yield Simulated(part, "platform")

    # The baseline: the same job without faults.

    def _take_baseline(self, owned: RunDirectory, baseline: str) -> None:
        if baseline == "none":
            return
        if baseline != "auto":
            given = self._options.reports / baseline  # an absolute path stays as it is
            if (why := why_incomplete(given)) is not None:
                raise Refused(f"baseline {baseline}: {given} cannot serve as a baseline: {why}")
            copy_into(given, owned.path)
            return
        key = baseline_key(
            self._scenario,
            fingerprint={**self._begun().begun, "digest steps": str(self._digest_steps), **self._unshared(owned)},
            versions=self._versions,
            sdk=self._sdk,
            cores=len(self._cores),
            same_losses=self._kind.traits.same_losses,
        )
        wait = Patience(self._scenario.deadlines.run, self._clock, (self._deadline,))
        found, made = find_or_make(
            self._options.reports, key, lambda: self._make_baseline(key), wait=wait, still=self._still
        )
        self._progress.note(f"baseline {found.name} " + ("made" if made else "taken from the cache"))
        copy_into(found, owned.path)

    def _completed(
        self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter
    ) -> tuple[Plan, Scenario]:
        """Plan and scenario with what the baseline shows of the job: how many steps come to one update."""
        baseline = plan.equivalence.baseline
        if baseline == "none":
            return plan, scenario
        from chaos.run.accumulation import completed, first_drawn, is_misnumbered

        cell = completed(self._cell, owned.path)
        if cell is None:
            return plan, scenario
        every = cell.scenario.job.steps_per_update
        self._progress.note(f"the fault-free run makes an update once in {every} steps: planned with that")
        plan = plan_cell(self._loaded, cell, first_drawn(cell, plan))
        plan = replace(plan, equivalence=replace(plan.equivalence, baseline=baseline))
        self._cell, self._scenario, self._plan = cell, cell.scenario, plan
        self._digest_steps = digest_steps(plan, cell.scenario.job.digest_interval)
        if baseline == "auto" and (self._digest_steps or is_misnumbered(owned.path)):
            shutil.rmtree(owned.path / "baseline")
            self._take_baseline(owned, baseline)
        (owned.path / "plan.json").write_text(io.dumps(plan), "utf-8")
        made_by = io.fingerprint((owned.path / "plan.json").read_bytes())
        history.record("plan.completed", steps_per_update=every, plan=made_by)
        return plan, cell.scenario

    def _unshared(self, owned: RunDirectory) -> Mapping[str, str]:
        """What keeps other runs from this one's baseline: packages of the hosts whose releases nobody here knows."""
        unknown = unknown_releases(self._scenario, self._versions, self._sdk)
        if not unknown:
            return {}
        self._progress.note(f"a baseline of this run's own: the hosts' releases of {', '.join(unknown)} are not known")
        return {"unknown releases": owned.token}

    def _begun(self) -> Inputs:
        """The job's inputs as they were when this was first asked for. Raises InputChanged where the plan is older."""
        if self._inputs is None:
            self._inputs = self._planned.begin()
        return self._inputs

    def _still(self) -> bool:
        """Whether the job's inputs are what they were; a source that changed is an error."""
        changed = self._begun().changed()
        if changed:
            listed = ", ".join(changed)
            self._progress.note(f"the baseline is not kept for other runs: what it reads has changed ({listed})")
        return not changed

    def _make_baseline(self, key: str) -> Path:
        self._progress.note("no baseline is cached for this job: running it once without faults")
        scenario = self._scenario.model_copy(
            update={"faults": (), "expect": Expect(), "finding": None, "failing": (), "baseline": "none"}
        )
        plan = build_plan(
            scenario,
            Source(str(self._loaded.path), self._cell.lines, "", self._cell.origins, self._cell.facts),
            traits=self._traits,
            kinds={},
            draw_seed=lambda: 0,
            platform=named_platform(scenario).traits,
        )
        owned = create_run(self._options.reports, "baseline", key[:12], clock=self._clock)
        with owned.lock:
            self._describe(owned, plan, scenario)
            if self._record_run(owned, plan, scenario):
                self._broken_off = owned.path
                raise KeyboardInterrupt
        if self._changed is not None:  # else it would be told that the job does not train to its end
            raise self._changed
        return owned.path

    # One run: the launch that is faulted, and the resume.

    def _drive(self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter) -> None:
        job = owned.path / "job"
        job.mkdir()
        kinds = [self._kinds[fault.kind] for fault in plan.faults]
        launches = Launches(
            self._kind, self._kinds, self._traits, self._platform, self._sdk, self._clock, self._digest_steps
        )
        with (
            watching_quarantine(kinds, history, self._progress, SystemCommands(), self._names_of_nodes(scenario)),
            self._leases.take_ports(self._kind.ports, run=owned.token) as ports,
            open_session(
                scenario,
                self._loaded.path.parent,
                plan,
                owned,
                history,
                ports=ports.numbers,
                cores=self._cores,
                progress=self._progress,
                clock=self._clock,
                deadline=self._deadline,
                platform=self._platform,
                sdk=self._sdk,
            ) as session,
            noticing_mishaps(history, "train", self._clock, owned.path, owned.token) as mishaps,
        ):
            self._begun().changed()
            if plan.resume.resumes or plan.resume.restore is not None:
                import chaos.run.before_resume  # noqa: F401  # a later import would be a part of the recovery's time
            came_to_end = launches.attempt(session, "train", plan.faults, resume=False)
            if came_to_end and (plan.resume.resumes or plan.resume.restore is not None) and scenario.job.resume:
                mishaps.attempt = "resume"
                self._resume(session, launches)

    def _names_of_nodes(self, scenario: Scenario) -> Sequence[str]:
        """What the cluster calls the machines of the job."""
        if isinstance(self._platform, NamesNodes):
            return self._platform.names_of_nodes(scenario, self._loaded.path.parent)
        return [node_name(os.environ)]

    def _resume(self, session: Session, launches: Launches) -> None:
        from chaos.run.before_resume import look_at_saves

        kind: SavedKind = "end-of-life" if session.plan.resume.restore is None else "periodic"
        if not look_at_saves(session.owned.path, kind, session.history):
            session.history.record(
                "resume.skipped", attempt="resume", reason=f"no finished {kind} checkpoint was saved"
            )
            return
        self._begun().changed()
        try:
            launches.attempt(session, "resume", (), resume=True)
        except JobFailed as failed:
            if session.plan.resume.resumes:
                raise
            # The plan says that there is nothing to go on from: a job that says so too does what it should.
            session.history.record("resume.refused", attempt="resume", reason=str(failed))


def digest_steps(plan: Plan, interval: int) -> tuple[int, ...]:
    """The steps that must have digests although they are thinned out: without them nothing could be compared."""
    if interval <= 1:
        return ()
    saved = [part.step for part in (plan.checkpoint, plan.resume.restore) if part is not None]
    # What a spike came to is in the digest of its own step.
    spikes = [fault.trigger.get("step") for fault in plan.faults if fault.effect == ABNORMAL]
    # What was changed, and what was there before.
    silent = [fault.trigger.get("step") for fault in plan.faults if fault.effect == SILENT]
    before = [step - 1 for step in silent if step is not None]
    recovered = [recovery.step for recovery in plan.response.recoveries]
    steps = [plan.training.last_step, *saved, *spikes, *silent, *before, *recovered]
    return tuple(sorted({step for step in steps if step is not None}))
