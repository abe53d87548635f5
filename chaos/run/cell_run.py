"""One cell from its plan to its verdict: baseline, faulted launch, resume, and the checks of the record."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import Clock
from chaos.base.rank_sets import named
from chaos.base.wait import Deadline, DeadlineExpired
from chaos.checks.run.events import CHANGED
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.ascend.quarantine import node_name
from chaos.machine.job.protocol import HelperLost, Platform
from chaos.machine.leases import Lease, Leases
from chaos.machine.linux.commands import SystemCommands
from chaos.own.allowed import has_own_code
from chaos.own.hooks import HookFailed
from chaos.plan import io
from chaos.plan.model import Plan
from chaos.platforms.nodes import NamesNodes, NodePlatform
from chaos.run.baseline import BaselineOnlooker, BaselineTaker
from chaos.run.description import Description, write_plan
from chaos.run.digest_steps import digest_steps
from chaos.run.launch.attempt import JobFailed
from chaos.run.launch.launches import Launches, record_deadline
from chaos.run.launch.ports_taken import PortTaken
from chaos.run.made_with import masked_values
from chaos.run.options import RunOptions, RunOutcome
from chaos.run.own_code import OwnCode
from chaos.run.prepare.inputs import InputChanged, Inputs
from chaos.run.prepare.prepare import plan_cell
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.versions import sdk_named, versions
from chaos.run.progress import Progress
from chaos.run.session import JobPlatform, Session, open_session
from chaos.run.watch.host_incidents import noticing_incidents
from chaos.run.watch.quarantine import watching_quarantine
from chaos.scenario.models.scenario import Scenario
from chaos.store.baselines import BaselineError, name_maker_run
from chaos.store.directory import RunDirectory, create_run, point_latest, update_run

if TYPE_CHECKING:
    from chaos.evidence.checkpoints.saved import SavedKind
    from chaos.plan.traits import JobTraits

_PORT_ATTEMPTS = 3
"""How often a run is made in all where another process takes its ports each time."""


class BaselineBrokenOff(KeyboardInterrupt):
    """Ctrl-C ended the run of the baseline, whose directory the text names."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self.run_dir = run_dir


@dataclass
class Recorded:
    """The end of one run's record, where it is no error of the harness."""

    interrupted: bool = False
    changed: InputChanged | None = None


class CellRun:
    """Runs one cell, and its baseline where none is kept.

    Args:
        prepared: the cell.
        options: the options of the command line.
        progress: receives the events.
        clock: the time.
        leases: the leases of ports.
        cores: the processor cores that the job has.
    """

    def __init__(
        self,
        prepared: Prepared,
        options: RunOptions,
        progress: Progress,
        clock: Clock,
        leases: Leases,
        cores: Lease,
    ) -> None:
        self._prepared = prepared
        self._cell = prepared.cell
        self._plan = prepared.plan
        self._options, self._reports, self._page = options, options.reports, options.page
        self._progress = progress
        self._clock = clock
        self._leases = leases
        self._cores = cores
        self._platform: Platform | NodePlatform = prepared.registered.platform.make()
        self._deadline = Deadline("run", prepared.scenario.deadlines.run, clock)
        self._digest_steps: tuple[int, ...] = ()
        self._inputs: Inputs | None = None
        self._taken: PortTaken | None = None
        made_with = versions()
        self._description = Description(prepared, self._platform, options, made_with, cores.numbers)
        self._baseline = BaselineTaker(
            prepared,
            options,
            versions=made_with,
            cores=len(cores.numbers),
            make=self._make_baseline,
            progress=progress,
            clock=clock,
            deadline=self._deadline,
        )

    def run(self) -> RunOutcome:
        """Run and judge the cell; run it again with another port where another process took a port chosen for it."""
        for again in range(_PORT_ATTEMPTS - 1, -1, -1):
            self._taken = None
            outcome = self._run_once()
            if self._taken is None or outcome.interrupted or not again:
                break
            self._progress.note(f"{self._taken}; the run is made again with other ports")
        return outcome

    def _run_once(self) -> RunOutcome:
        plan, scenario = self._plan, self._cell.scenario
        self._digest_steps = digest_steps(plan, scenario.job.digest_interval)
        for fault in plan.faults:
            if fault.seed is not None:
                self._progress.note(f"fault {fault.id}: seed {fault.seed} drew {named(fault.ranks)}")
        owned = create_run(self._reports, plan.identity.scenario, plan.identity.cell, clock=self._clock)
        self._cores.name_run(str(owned.path))
        with owned.lock:
            self._description.write(owned, plan, scenario)
            point_latest(self._reports, owned.run)
            self._progress.follow(owned.path)
            own = self._own_code(owned)
            recorded = self._record(owned, plan, scenario, own)
            # The readers and judges of a run are imported when there is something to read: the job starts sooner.
            from chaos.report.analyze import analyze

            result = analyze(owned.path, page=self._progress.note if self._page else None)
            self._remember(owned.path)
            if own is not None:
                own.notify(result)
        return RunOutcome(owned.path, result.verdict, recorded.interrupted)

    def _own_code(self, owned: RunDirectory) -> OwnCode | None:
        """Return the scenario's own code; None where it has none."""
        if not has_own_code(self._cell.scenario):
            return None
        return OwnCode(self._prepared, self._options, owned, self._clock, self._progress)

    def _remember(self, run_dir: Path) -> None:
        """Add the run to the store of runs. An error of the store is reported, and changes no verdict."""
        from chaos.trends.runs import record_run

        for sentence in record_run(self._reports, run_dir):
            self._progress.note(sentence)

    def _record(self, owned: RunDirectory, plan: Plan, scenario: Scenario, own: OwnCode | None = None) -> Recorded:
        """Run with a history, and with the scenario's own code. Errors of the harness are recorded and raised."""
        recorded, error = Recorded(), None
        path = owned.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=owned.token, clock=self._clock) as history:
            self._record_start(owned, plan, scenario, history, checks=() if own is None else scenario.checks)
            try:
                if own is not None:
                    own.before(history)
                self._whole(owned, plan, scenario, history)
            except DeadlineExpired as expired:
                record_deadline(history, expired)
            except BaselineError as failed:
                error = str(failed)
                history.record("baseline.failed", reason=error)
            except PortTaken as taken:
                self._taken, error = taken, str(taken)  # by the baseline's launch, too
            except InputChanged as changed:
                recorded.changed, error = changed, str(changed)
                history.record(CHANGED, reason=error)
            except (JobFailed, HelperLost, HookFailed) as failed:
                error = str(failed)
            except KeyboardInterrupt as interrupt:
                recorded.interrupted = True
                if isinstance(interrupt, BaselineBrokenOff):
                    _record_broken_off(interrupt.run_dir, history)
            except BaseException as failure:
                error = f"{type(failure).__name__}: {failure}"
                raise
            finally:
                if own is not None:
                    own.after(history, checked=not recorded.interrupted)
                history.record("run.end", interrupted=recorded.interrupted, error=error)
        return recorded

    def _record_start(
        self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter, checks: Sequence[str]
    ) -> None:
        asked: dict[str, Any] = {"checks": list(checks)} if checks else {}
        history.record(
            "run.start",
            run=owned.run,
            scenario=plan.identity.scenario,
            cell=plan.identity.cell,
            seed=plan.training.seed,
            plan=io.fingerprint((owned.path / "plan.json").read_bytes()),
            sdk=sdk_named(self._prepared.registered.job.simulated(scenario, self._prepared.sdk)),
            limit=self._deadline.remaining(),  # one deadline for a fault-free run, and for a run made again, too
            **asked,
        )

    def _whole(self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter) -> None:
        """Make the baseline, then the launches, then thin out the checkpoints."""
        update_run(owned.path, inputs=masked_values(self._begun().begun))
        self._take_baseline(owned, plan, scenario, history)
        plan, scenario = self._completed(owned, plan, scenario, history)
        self._drive(owned, plan, scenario, history)
        from chaos.run.retention import keep_digests_only

        keep_digests_only(owned.path, scenario.keep_checkpoints_mb, history)

    def _begun(self) -> Inputs:
        """Return the job's inputs as of the first call. Raises InputChanged where one has changed since the plan."""
        if self._inputs is None:
            self._inputs = self._prepared.inputs.begin()
        return self._inputs

    def _take_baseline(self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter) -> None:
        onlooker = BaselineOnlooker(history, self._progress, self._deadline)
        inputs = self._begun()
        self._baseline.take(owned, plan.equivalence.baseline, scenario, inputs, self._digest_steps, onlooker)
        if plan.equivalence.baseline != "none":
            from chaos.run.misstated import misstated

            baseline, timeout = read_history(owned.path / "baseline" / "history"), scenario.job.torchrun.group_timeout
            for sentence in misstated(plan, baseline, timeout):
                self._progress.note(sentence)
        self._progress.follow(owned.path)

    def _make_baseline(self, key: str, plan: Plan, scenario: Scenario) -> Path:
        owned = create_run(self._reports, "baseline", key[:12], clock=self._clock)
        with owned.lock:
            name_maker_run(self._reports, key, owned.run)
            self._description.write(owned, plan, scenario, baseline=True)
            self._progress.follow(owned.path)
            recorded = self._record(owned, plan, scenario)
        if recorded.interrupted:
            raise BaselineBrokenOff(owned.path)
        if recorded.changed is not None:  # else the error would be that the job does not train to its end
            raise recorded.changed
        return owned.path

    def _completed(
        self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter
    ) -> tuple[Plan, Scenario]:
        """Return plan and scenario, completed from the baseline with the number of steps in one update."""
        baseline = plan.equivalence.baseline
        if baseline == "none":
            return plan, scenario
        from chaos.run.accumulation import completed, first_drawn, is_misnumbered

        cell = completed(self._cell, owned.path)
        if cell is None:
            return plan, scenario
        every = cell.scenario.job.steps_per_update
        self._progress.note(f"the fault-free run makes an update once in {every} steps: planned with that")
        plan = plan_cell(self._prepared.loaded, cell, first_drawn(cell, plan))
        plan = replace(plan, equivalence=replace(plan.equivalence, baseline=baseline))
        self._cell, self._plan = cell, plan
        self._digest_steps = digest_steps(plan, cell.scenario.job.digest_interval)
        if baseline == "auto" and (self._digest_steps or is_misnumbered(owned.path)):
            shutil.rmtree(owned.path / "baseline")
            self._take_baseline(owned, plan, cell.scenario, history)
        history.record("plan.completed", steps_per_update=every, plan=write_plan(owned, plan))
        return plan, cell.scenario

    def _drive(self, owned: RunDirectory, plan: Plan, scenario: Scenario, history: HistoryWriter) -> None:
        """Run the faulted launch, and the resume."""
        job = owned.path / "job"
        job.mkdir()
        registered, directory = self._prepared.registered, self._prepared.loaded.path.parent
        kinds = [registered.kinds[fault.kind] for fault in plan.faults]
        launches = Launches(
            registered.job,
            registered.kinds,
            self._prepared.traits,
            self._platform,
            self._prepared.sdk,
            self._clock,
            self._digest_steps,
        )
        with (
            watching_quarantine(kinds, history, self._progress, SystemCommands(), self._names_of_nodes(scenario)),
            self._leases.take_ports(registered.job.ports, run=owned.token) as ports,
            open_session(
                scenario,
                directory,
                plan,
                owned,
                history,
                ports=ports.numbers,
                cores=self._cores.numbers,
                progress=self._progress,
                clock=self._clock,
                deadline=self._deadline,
                on=JobPlatform(self._platform, registered.named.settings_in(scenario), self._prepared.rank_needs),
            ) as session,
            noticing_incidents(history, "train", self._clock, owned.path, owned.token) as incidents,
        ):
            self._begun().changed()
            resumed = plan.resume.resumes or plan.resume.restore is not None
            if resumed:
                import chaos.run.before_resume  # noqa: F401  # a later import would be a part of the recovery's time
            if resumed and scenario.job.supervised:

                def next_begins() -> None:
                    incidents.attempt = "resume"
                    _look(session, launches.traits)

                launches.attempt(session, "train", plan.faults, resume=False, before_next=next_begins)
                return
            came_to_end = launches.attempt(session, "train", plan.faults, resume=False)
            if came_to_end and resumed and scenario.job.resume:
                incidents.attempt = "resume"
                self._resume(session, launches)

    def _names_of_nodes(self, scenario: Scenario) -> Sequence[str]:
        """Return the cluster's names for the machines of the job."""
        if isinstance(self._platform, NamesNodes):
            return self._platform.names_of_nodes(scenario, self._prepared.loaded.path.parent)
        return [node_name(os.environ)]

    def _resume(self, session: Session, launches: Launches) -> None:
        if not _look(session, launches.traits):
            reason = f"no finished {_kind_of_saves(session)} checkpoint is recorded"
            session.history.record("resume.skipped", attempt="resume", reason=reason)
            return
        self._begun().changed()
        try:
            launches.attempt(session, "resume", (), resume=True)
        except JobFailed as failed:
            if session.plan.resume.resumes:
                raise
            # The plan says that there is nothing to go on from: a job that says the same is right.
            session.history.record("resume.refused", attempt="resume", reason=str(failed))


def _kind_of_saves(session: Session) -> SavedKind:
    return "end-of-life" if session.plan.resume.restore is None else "periodic"


def _look(session: Session, traits: JobTraits) -> bool:
    """Return whether there is a checkpoint to go on from; the content of files that may be overwritten is recorded."""
    from chaos.run.before_resume import look_at_saves, record_damage
    from chaos.run.inject.storage import storage_of

    restore = session.plan.resume.restore
    if restore is not None and restore.stated:
        job = session.owned.path / "job"
        record_damage(session.owned.path, storage_of(job, traits) or job, session.history)
    return look_at_saves(session.owned.path, _kind_of_saves(session), session.history)


def _record_broken_off(baseline: Path, history: HistoryWriter) -> None:
    from chaos.report.reason import BROKEN_OFF, became_of

    became = became_of(read_history(baseline / "history"))
    history.record(BROKEN_OFF, run=baseline.name, became=became)
