"""A whole run on a fake job: real processes, the real agent, real faults, and nothing of them left afterwards."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK, Clock, SystemClock
from chaos.base.file_lock import FileLock
from chaos.base.refusal import Refused
from chaos.base.registry import NOUNS, Registry
from chaos.checks.history.updates import Observed
from chaos.checks.judge import judge
from chaos.cli.failure import explain
from chaos.cli.headlines import headline
from chaos.history.event import Event
from chaos.history.ledger import Ledger
from chaos.history.reader import History, read_history
from chaos.jobs.kind import JobError
from chaos.live import follow
from chaos.live.state import LiveState
from chaos.machine.job.local import LocalPlatform
from chaos.machine.job.processes import find_run_processes
from chaos.machine.lease_holder import this_holder
from chaos.plan.io import fingerprint, loads
from chaos.report.result_file import read_result
from chaos.run.driver import run_cell
from chaos.run.launch.setup import write_secret
from chaos.run.made_with import own_code
from chaos.run.options import RunOptions, RunOutcome
from chaos.run.prepare.prepare import known_names, prepare
from chaos.scenario.load import load_scenario
from chaos.store.baselines import maker_of
from chaos.store.directory import read_run
from chaos.trends.runs import read_runs
from tests.unit.fake_job import kind, listening
from tests.unit.run.fakes import Watcher
from tests.unit.run.own_cores import OwnCores

pytestmark = pytest.mark.processes

SCENARIO = """\
chaos: 1
name: fake
{variables}
cluster: {{ranks: 4}}
job: {{kind: fake, steps: 8, {job}}}
faults: {faults}
deadlines: {{start: 60s, fault: 60s, end: 60s, stop: 5s}}
"""
KILL = "[{id: kill, kind: kill, target: {rank: 2}, trigger: {step: 5, phase: step.end}}]"
SUSPEND = "[{id: stop, kind: suspend, target: {ranks: [1, 3]}, trigger: {step: 3}}]"

Run = Callable[..., RunOutcome]


class Interrupting(Watcher):
    """A view that stands for somebody who presses Ctrl-C when a certain event is shown."""

    def __init__(self, event: str) -> None:
        super().__init__()
        self._at = event

    def event(self, event: Event) -> None:
        super().event(event)
        if event.event == self._at:
            raise KeyboardInterrupt


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a scenario of the fake job in a reports directory of its own: ``drive(faults=KILL)``."""
    known = {
        "chaos.jobs": [EntryPoint("fake", f"{kind.__name__}:KIND", "chaos.jobs")],
        "chaos.faults": [
            EntryPoint(name, f"chaos.faults.signals.{name}:KIND", "chaos.faults") for name in ("kill", "suspend")
        ],
        "chaos.platforms": [EntryPoint("local", "chaos.platforms.local.kind:KIND", "chaos.platforms")],
    }

    def registry(group: str) -> Registry:
        return Registry(f"chaos.{group}", NOUNS[f"chaos.{group}"], source=lambda name: known.get(name, ()))

    monkeypatch.setattr("chaos.run.prepare.prepare.registry", registry)
    monkeypatch.setattr("chaos.jobs.kind.registries", SimpleNamespace(registry=registry))
    # Cores of its own, or the tests would wait for the jobs of others.
    monkeypatch.setattr("chaos.run.driver.Leases", lambda: OwnCores(tmp_path / "leases"))

    def drive(
        faults: str = "[]",
        job: str = "protection: []",
        baseline: str = "none",
        progress: Watcher | None = None,
        clock: Clock = SYSTEM_CLOCK,
        settings: Mapping[str, str] = MappingProxyType({}),
        before_run: Callable[[], None] = lambda: None,
    ) -> RunOutcome:
        path = tmp_path / "fake.yaml"
        variables = "variables: {batch: small}" if settings else ""
        path.write_text(SCENARIO.format(faults=faults, job=job, variables=variables))
        loaded = load_scenario(path, settings=settings, names=known_names())
        set_there = [f"--set={name}={value}" for name, value in settings.items()]
        options = RunOptions(tmp_path / "reports", baseline, arguments=("run", str(path), *set_there))
        prepared = prepare(loaded, loaded.cells[0], "standin", draw_seed=1)
        before_run()
        return run_cell(prepared, options, progress or Watcher(), clock=clock)

    return drive


def history_of(outcome: RunOutcome) -> History:
    return read_history(outcome.run_dir / "history")


def nothing_is_left(run_dir: Path) -> None:
    assert find_run_processes(read_run(run_dir)["token"]) == []
    ledger = Ledger(run_dir / "undo.jsonl").read()
    assert ledger.open == []
    for step in ledger.steps:
        if step.action == "remove-directory":
            assert not Path(step.arguments["path"]).exists()
    (hygiene,) = read_history(run_dir / "history").select("hygiene")
    assert hygiene.data == {"orphans": [], "ports": [], "stale": [], "private_left": False}


def test_a_run_is_in_the_store_of_runs(drive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_JOB_URL", "https://ci/jobs/7")
    monkeypatch.setenv("CI_COMMIT_SHA", "abc")
    outcome = drive()
    (row,) = read_runs(outcome.run_dir.parent).rows
    assert (row.run, row.verdict, row.ci, row.revision) == (
        outcome.run_dir.name, outcome.verdict, "https://ci/jobs/7", "abc",
    )  # fmt: skip


def test_a_store_that_cannot_be_written_fails_no_run(drive: Run, tmp_path: Path) -> None:
    (tmp_path / "reports" / "runs.sqlite").mkdir(parents=True)
    progress = Watcher()
    outcome = drive(progress=progress)
    assert (outcome.run_dir / "result.json").is_file()
    assert [note for note in progress.notes if "unable to open database file" in note]


def test_a_rank_is_killed_at_its_step_and_the_others_go_on(drive: Run) -> None:
    outcome = drive(KILL)
    history = history_of(outcome)
    assert [p for p in history.problems if p.kind != "torn-last-line"] == []
    (landed,) = history.select("fault.landed")
    (evidence,) = landed.data["evidence"]
    (found,) = history.select("rank.found", rank=2)
    assert evidence == {"rank": 2, "pid": found.pid, "signal": 9, "barrier": {"step": 5, "phase": "step.end"}}
    assert [event.data["step"] for event in history.select("step.end", rank=2)] == [1, 2, 3, 4, 5]
    assert [event.data["step"] for event in history.select("step.end", rank=0)] == [1, 2, 3, 4, 5, 6, 7, 8]
    exits = {event.rank: (event.data["signal"], event.data["code"]) for event in history.select("rank.exit")}
    assert exits == {0: (None, 0), 1: (None, 0), 2: (9, None), 3: (None, 0)}
    assert history.select("barrier.released", rank=2) == []
    assert [event.data["role"] for event in history.select("launcher.exit")] == ["launcher"]
    assert history.select("run.end")[0].data == {"interrupted": False, "error": None}
    assert not outcome.interrupted
    nothing_is_left(outcome.run_dir)


def test_what_the_command_line_set_is_in_the_report(drive: Run) -> None:
    outcome = drive("[]", job='protection: [], arguments: ["--batch=${batch}"]', settings={"batch": "enormous"})
    made = read_result(outcome.run_dir).made
    assert made.variables == {"batch": "enormous"}
    assert made.command is not None
    assert made.command[-1] == "--set=batch=enormous"
    assert made.cores
    assert made.code == own_code()
    assert made.started is not None
    start, end = (history_of(outcome).select(event)[0] for event in ("run.start", "run.end"))
    assert made.seconds == pytest.approx((end.mono - start.mono) / 1e9, abs=1.0)
    assert read_run(outcome.run_dir)["variables"] == {"batch": "enormous"}


def test_what_an_edited_file_says_on_another_day_is_in_the_report(drive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"configuration job.yaml": "8c1f", "environment API_TOKEN": "x-1"}
    monkeypatch.setattr(kind.KIND, "fingerprint", lambda *_: dict(inputs), raising=False)
    hosts = [{"name": "first", "address": "10.0.0.5"}]
    # A class of its own: Python remembers for each class whether it has the members of a protocol.
    inventory = type("Inventory", (LocalPlatform,), {"hosts_as_given": lambda *_: hosts})
    monkeypatch.setattr("chaos.machine.job.local.LocalPlatform", inventory)
    made = read_result(drive().run_dir).made
    assert made.hosts == tuple(hosts)
    assert made.inputs is not None
    assert made.inputs["configuration job.yaml"] == "8c1f"
    assert made.inputs["environment API_TOKEN"] == "***"


def test_a_run_without_an_inventory_records_no_hosts(drive: Run) -> None:
    assert read_result(drive().run_dir).made.hosts == ()


def test_a_job_for_which_too_few_files_may_be_open_is_not_started(
    drive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.run.open_files.resource.getrlimit", lambda which: (71, 1024))
    with pytest.raises(Refused, match=r"4 ranks on this host needs 72 open files .* is 71; call `ulimit -n 72`"):
        drive()
    assert not (tmp_path / "reports").exists()


def test_a_user_without_a_usable_key_is_refused_before_the_wait_for_cores(
    drive: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHAOS_KEY", "no key")
    monkeypatch.setattr("chaos.run.driver.Leases", lambda: pytest.fail("cores were asked for"))
    with pytest.raises(Refused, match="the key in the variable CHAOS_KEY is none"):
        drive()
    assert not (tmp_path / "reports").exists()


def test_suspended_ranks_are_continued_and_ended(drive: Run) -> None:
    outcome = drive(SUSPEND)
    history = history_of(outcome)
    (landed,) = history.select("fault.landed")
    assert [(entry["rank"], entry["signal"]) for entry in landed.data["evidence"]] == [(1, 19), (3, 19)]
    order = [e.event for e in history.events if e.event in ("fault.landed", "fault.healed", "attempt.end", "hygiene")]
    assert order == ["fault.landed", "fault.healed", "fault.healed", "attempt.end", "hygiene"]
    # The latest step is undone first.
    closed = [json.loads(line) for line in (outcome.run_dir / "undo.jsonl").read_text().splitlines()]
    assert [one["id"] for one in closed if one["record"] == "close"] == [
        "stop-rank-3",
        "stop-rank-1",
        "job",
        "private-directory",
    ]
    ended = {event.rank: event.data for event in history.select("rank.exit")}
    assert set(ended) == {0, 1, 2, 3}
    nothing_is_left(outcome.run_dir)


def test_the_secret_is_nowhere_but_in_the_private_directory(drive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets: list[str] = []

    def overheard(private: Path) -> str:
        secrets.append(write_secret(private))
        return secrets[0]

    monkeypatch.setattr("chaos.run.session.write_secret", overheard)
    outcome = drive(KILL)
    assert len(history_of(outcome).select("fault.landed")) == 1  # the agents have read it
    files = [path for path in outcome.run_dir.rglob("*") if path.is_file()]
    assert {"run.json", "undo.jsonl", "harness.jsonl", "started-0.json"} <= {path.name for path in files}
    assert [path for path in files if secrets[0].encode() in path.read_bytes()] == []
    started = json.loads((outcome.run_dir / "job" / "started-0.json").read_text())
    assert started["environment"]["FROM_KIND"] == "yes"
    assert "CHAOS_AGENT" in started["environment"]


@pytest.mark.parametrize("at", ["attempt.start", "rank.found", "step.end", "rank.exit"])
def test_ctrl_c_ends_the_run_in_order(drive: Run, at: str, tmp_path: Path) -> None:
    outcome = drive(SUSPEND, progress=Interrupting(at))
    assert outcome.interrupted
    assert history_of(outcome).select("run.end")[0].data == {"interrupted": True, "error": None}
    nothing_is_left(outcome.run_dir)


def test_ctrl_c_in_the_fault_free_run_says_what_became_of_that(drive: Run) -> None:
    outcome = drive(KILL, baseline="auto", progress=Interrupting("rank.found"))
    answer = json.loads((outcome.run_dir / "result.json").read_text())["reason"]
    assert answer == "interrupted in the fault-free run; job ended; no fault was made; nothing left"
    (event,) = history_of(outcome).select("baseline.interrupted")
    assert (outcome.run_dir.parent / event.data["run"] / "history").is_dir()


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that this process does not ignore, whoever started it."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_a_supervisor_ends_the_run_as_ctrl_c_does(drive: Run, number: signal.Signals) -> None:
    class Signalling(Watcher):
        """A view at whose second event somebody ends the harness, and again, and again."""

        def event(self, event: Event) -> None:
            super().event(event)
            if event.event in ("rank.found", "rank.exit"):
                os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    outcome = drive(progress=Signalling())
    assert outcome.interrupted
    assert signal.getsignal(number) is before
    nothing_is_left(outcome.run_dir)


def test_an_error_of_the_harness_ends_the_run_in_order_and_is_recorded(drive: Run, tmp_path: Path) -> None:
    class Broken(Watcher):
        """A view that breaks."""

        def event(self, event: Event) -> None:
            if event.event == "step.end":
                raise ZeroDivisionError("the view is broken")

    with pytest.raises(ZeroDivisionError):
        drive(KILL, progress=Broken())
    (run_dir,) = (path for path in (tmp_path / "reports").glob("fake-*"))
    read = read_history(run_dir / "history")
    assert read.select("run.end")[0].data["error"] == "ZeroDivisionError: the view is broken"
    nothing_is_left(run_dir)


def test_a_deadline_that_expires_is_recorded_and_ends_the_run_in_order(
    drive: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.SCENARIO", SCENARIO.replace("end: 60s", "end: 300ms"))
    outcome = drive(job="arguments: ['--wait-at=4']")
    (expired,) = history_of(outcome).select("deadline.expired")
    assert (expired.attempt, expired.data["name"], expired.data["seconds"]) == ("train", "end", 0.3)
    assert "not exited: ranks 0-3: step 4; see" in expired.data["detail"]
    nothing_is_left(outcome.run_dir)


class Jumping(SystemClock):
    """A wall clock that somebody sets while the run goes on: an hour back, then a year on."""

    def __init__(self) -> None:
        self._looks = 0

    def wall(self) -> int:
        self._looks += 1
        return super().wall() + (-3600 if self._looks % 2 else 365 * 86400) * 1_000_000_000


def test_a_wall_clock_that_jumps_decides_nothing(drive: Run) -> None:
    outcome = drive(KILL, clock=Jumping())
    history = history_of(outcome)
    assert [p for p in history.problems if p.kind != "torn-last-line"] == []
    assert history.select("deadline.expired") == [] and history.select("harness.stopped") == []
    order = [event.event for event in history.select(writer="harness") if event.event.startswith(("run.", "fault."))]
    assert order == ["run.start", "fault.armed", "fault.injecting", "fault.landed", "fault.healed", "run.end"]
    nothing_is_left(outcome.run_dir)


def test_a_job_that_cannot_start_says_which_rank_and_which_log(drive: Run) -> None:
    outcome = drive(job="arguments: ['--no-such-option']")
    error = history_of(outcome).select("run.end")[0].data["error"]
    (given_up,) = history_of(outcome).select("job.failed", attempt="train")
    exits = history_of(outcome).select("rank.exit", attempt="train")
    assert given_up.data == {"reason": error} and any(event.mono <= given_up.mono for event in exits)
    assert " s, before every rank had begun its first step" in error
    assert "train.py: error: unrecognized arguments: --no-such-option; see" in error
    place = Path(error.split("; see ")[1])
    logs = [place] if place.is_file() else list(place.glob("worker_*.log"))
    assert any("--no-such-option" in log.read_text() for log in logs)
    nothing_is_left(outcome.run_dir)


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The job's rank 0 listens at the port of its launch; whoever took that first lets go after the test."""
    monkeypatch.setattr(kind, "KIND", listening.KIND)
    yield listening.STRANGERS
    while listening.STRANGERS:
        listening.STRANGERS.pop().close()


def assert_one_deadline(first: History, last: str, second: History) -> None:
    """The limit of a run that begins later is shorter by the time between the two; it begins after ``last``."""
    opened, start, end = (first.select(name)[0] for name in ("writer.start", "run.start", last))
    (later,) = second.select("run.start")
    limit, rounding = start.data["limit"], 1e-6
    assert later.data["limit"] <= limit - (end.mono - start.mono) / 1e9 + rounding
    assert later.data["limit"] >= limit - (later.mono - opened.mono) / 1e9 - rounding


def test_a_port_that_somebody_else_took_is_changed_for_another(drive: Run, strangers: list[socket.socket]) -> None:
    watcher = Watcher()
    outcome = drive(job="environment: {STRANGERS: '1'}", progress=watcher)
    assert history_of(outcome).select("run.end")[0].data == {"interrupted": False, "error": None}
    (port,) = [stranger.getsockname()[1] for stranger in strangers]
    assert any(f"chosen for the job: {port} by PID {os.getpid()}" in note for note in watcher.notes)
    runs = [path for path in outcome.run_dir.parent.iterdir() if path.is_dir() and not path.is_symlink()]
    (first,) = [run for run in runs if run != outcome.run_dir]
    assert_one_deadline(read_history(first / "history"), "run.end", history_of(outcome))
    (taken,) = read_history(first / "history").select("port.taken")
    assert taken.data["ports"] == [{"port": port, "pids": [os.getpid()]}]
    nothing_is_left(outcome.run_dir)


def test_a_job_that_never_gets_its_port_is_not_blamed(drive: Run, strangers: list[socket.socket]) -> None:
    outcome = drive(KILL, job="environment: {STRANGERS: '9'}")
    assert len(strangers) == 3
    assert outcome.verdict == "unknown"
    result = read_result(outcome.run_dir)
    assert [check.name for check in result.checks if check.verdict == "fail"] == []
    (judged,) = [check for check in result.checks if check.name == "run" and check.verdict == "unknown"]
    assert judged.expected == "no other process takes the ports that the harness chooses"
    assert f"chosen for the job: {strangers[-1].getsockname()[1]}" in judged.seen


def test_ranks_without_an_agent_are_noticed_when_the_job_is_over(
    drive: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("chaos.run.launch.setup.AGENT_SITE", tmp_path)
    error = history_of(drive()).select("run.end")[0].data["error"]
    assert "the launcher ended (exit code 0), and ranks 0-3 never joined; see" in error


def test_the_baseline_is_made_once_and_copied(drive: Run) -> None:
    first, second = Watcher(), Watcher()
    one, two = drive(KILL, baseline="auto", progress=first), drive(SUSPEND, baseline="auto", progress=second)
    assert [note.rpartition(" ")[2] for note in first.notes if note.startswith("baseline")] == ["made"]
    assert [note.rpartition(" ")[2] for note in second.notes if note.startswith("baseline")] == ["cache"]
    for outcome in (one, two):
        copied = read_history(outcome.run_dir / "baseline" / "history")
        assert len(copied.select("step.end")) == 32
        assert copied.select("fault.armed") == []
        described: dict[str, Any] = read_run(outcome.run_dir / "baseline")
        assert described["run"].startswith("baseline-")
        assert described["simulated"] == [{"part": "everything", "layer": "job"}], "what only faults need is no part"
        (waited,) = history_of(outcome).select("wait.begin", name="baseline")
        assert maker_of(outcome.run_dir.parent, waited.data["key"]) is None, "it is made"
    assert_one_deadline(history_of(one), "wait.begin", read_history(one.run_dir / "baseline" / "history"))
    assert (one.run_dir.parent / "latest").resolve() == two.run_dir


class WaitsForBaseline(Watcher):
    """A view that, as long as another harness makes the fault-free run, looks at the run as ``chaos watch`` does."""

    def __init__(self, reports: Path, lock: FileLock) -> None:
        super().__init__()
        self.states: list[LiveState] = []
        self._reports, self._lock = reports, lock

    def event(self, event: Event) -> None:
        super().event(event)
        if event.event == "baseline.awaited":
            self.states.append(follow((self._reports / "latest").resolve()).state())
            self._lock.release()


def test_a_run_that_waits_for_the_fault_free_run_of_another_harness_says_whose_it_is(
    drive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, reports = "0a" * 32, tmp_path / "reports"
    monkeypatch.setattr("chaos.run.baseline.baseline_key", lambda *_, **__: key)
    (reports / ".baselines").mkdir(parents=True)
    lock = FileLock.try_acquire(reports / ".baselines" / f"{key}.lock")
    assert lock is not None
    lock.write(json.dumps({**asdict(this_holder()), "run": "baseline-1"}))
    view = WaitsForBaseline(reports, lock)
    outcome = drive(KILL, baseline="auto", progress=view)
    (state,) = view.states
    assert state.stage == "baseline" and state.waiting is not None and state.baseline_maker is not None
    assert (state.baseline_maker.pid, state.baseline_maker.run) == (os.getpid(), "baseline-1")
    (awaited,) = history_of(outcome).select("baseline.awaited")
    maker = awaited.data["maker"]
    assert headline(awaited) == (
        f"another process makes the fault-free run of this job: process {os.getpid()} of {maker['user']}, since "
        f"{time.strftime('%H:%M:%S', time.localtime(maker['since']))}, run baseline-1"
    )
    assert history_of(outcome).select("run.end")[0].data["error"] is None


def test_the_run_is_planned_with_the_steps_for_an_update_that_the_baseline_shows(
    drive: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "chaos.run.accumulation.observe", lambda history: Observed(2, 2, history.select("digest")[-1], 4)
    )
    watched = Watcher()
    outcome = drive(KILL, baseline="auto", progress=watched)
    assert "the fault-free run makes an update once in 2 steps: planned with that" in watched.notes
    (completed,) = history_of(outcome).select("plan.completed")
    plan = outcome.run_dir / "plan.json"
    assert completed.data == {"steps_per_update": 2, "plan": fingerprint(plan.read_bytes())}
    assert loads(plan.read_bytes()).training.steps_per_update == 2
    judged = [finding for finding in judge(outcome.run_dir).findings if "the plan is unchanged" in finding.expected]
    assert [finding.verdict for finding in judged] == ["pass"]


class Editing(Watcher):
    """A view that stands for somebody who changes one of the job's inputs while the baseline is made."""

    def __init__(self, inputs: dict[str, str], name: str) -> None:
        super().__init__()
        self._inputs, self._name = inputs, name

    def event(self, event: Event) -> None:
        super().event(event)
        if event.event == "attempt.start":
            self._inputs[self._name] = "edited"


def test_a_source_that_changes_while_the_baseline_is_made_is_an_error_that_names_it(
    drive: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inputs = {"configuration job.yaml": "as it was"}
    monkeypatch.setattr(kind.KIND, "fingerprint", lambda *_: dict(inputs), raising=False)
    outcome = drive(baseline="auto", progress=Editing(inputs, "configuration job.yaml"))
    assert_told_as_changed(outcome)
    assert not list((tmp_path / "reports" / ".baselines").glob("*.txt"))


class EditingBefore(Watcher):
    """The same of somebody who changes it before the baseline's first launch, or before the run's own."""

    def __init__(self, inputs: dict[str, str], note: str) -> None:
        super().__init__()
        self._inputs, self._note = inputs, note

    def note(self, text: str) -> None:
        super().note(text)
        if self._note in text:
            self._inputs["configuration job.yaml"] = "edited"


@pytest.mark.parametrize("note", ["no baseline is cached", "made"])
def test_a_source_that_changes_before_a_launch_is_neither_the_jobs_failure_nor_the_harnesss(
    drive: Run, monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    inputs = {"configuration job.yaml": "as it was"}
    monkeypatch.setattr(kind.KIND, "fingerprint", lambda *_: dict(inputs), raising=False)
    outcome = drive(KILL, baseline="auto", progress=EditingBefore(inputs, note))
    assert_told_as_changed(outcome)
    assert history_of(outcome).select("attempt.start") == []


def test_a_source_that_changes_between_plan_and_run_starts_nothing(drive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with many cells plans them all, and runs the last one much later."""
    inputs = {"configuration job.yaml": "as it was"}
    monkeypatch.setattr(kind.KIND, "fingerprint", lambda *_: dict(inputs), raising=False)
    outcome = drive(KILL, before_run=lambda: inputs.update({"configuration job.yaml": "edited"}))
    assert_told_as_changed(outcome, "configuration job.yaml has changed since the run was planned")
    assert history_of(outcome).select("attempt.start") == []


@pytest.mark.parametrize("baseline", ["auto", "none"])
def test_a_source_that_is_not_there_is_no_defect_of_the_harness(
    drive: Run, monkeypatch: pytest.MonkeyPatch, baseline: str
) -> None:
    def missing(*_: object) -> None:
        raise JobError("job.script: there is no file x.py")

    monkeypatch.setattr(kind.KIND, "fingerprint", missing, raising=False)
    with pytest.raises(Refused, match=r"there is no file x\.py") as refused:
        drive(baseline=baseline)
    answer = explain(refused.value, ["run", "x.yaml"], debug=False)
    assert answer == "chaos: the run was not started: job.script: there is no file x.py"


def assert_told_as_changed(
    outcome: RunOutcome, change: str = "configuration job.yaml has changed while the run went on"
) -> None:
    history = history_of(outcome)
    (end,) = history.select("run.end")
    assert change in end.data["error"]
    assert "run it again" in end.data["error"]
    assert [event.data["reason"] for event in history.select("input.changed")] == [end.data["error"]]
    assert history.select("baseline.failed") == []
    assert outcome.verdict == "unknown"
    checks = read_result(outcome.run_dir).checks
    (told,) = [check for check in checks if check.name == "run" and check.verdict == "unknown"]
    assert told.seen == f"an input was changed: {end.data['error']}"


def test_a_baseline_whose_data_change_meanwhile_is_not_kept_for_others(
    drive: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inputs = {"seen /data/train.json": "8 bytes"}
    monkeypatch.setattr(kind.KIND, "fingerprint", lambda *_: dict(inputs), raising=False)
    view = Editing(inputs, "seen /data/train.json")
    outcome = drive(baseline="auto", progress=view)
    assert history_of(outcome).select("run.end")[0].data["error"] is None
    assert any("not kept for other runs" in note and "/data/train.json" in note for note in view.notes)
    assert not list((tmp_path / "reports" / ".baselines").glob("*.txt"))


def test_a_baseline_that_cannot_be_made_is_said_with_what_it_lacks(drive: Run) -> None:
    outcome = drive(KILL, job="arguments: ['--fail-at=6']", baseline="auto")
    error = history_of(outcome).select("run.end")[0].data["error"]
    assert "cannot serve as a baseline: ranks 0-3 did not reach step 8" in error
    assert outcome.verdict == "unknown"
    for run_dir in outcome.run_dir.parent.glob("*-*"):
        assert find_run_processes(read_run(run_dir)["token"]) == []


def test_the_run_describes_itself(drive: Run) -> None:
    described: dict[str, Any] = read_run(drive(KILL).run_dir)
    assert described["simulated"] == [{"part": "everything", "layer": "job"}, {"part": "kill", "layer": "fault"}]
    assert described["scenario"] == "fake"
    assert {"chaos", "python"} <= set(described["versions"])
    assert described["sdk"] == "vendor"  # no stand-in was put in
