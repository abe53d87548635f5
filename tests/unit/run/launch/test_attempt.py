"""A launch is followed from its start to its end, and whatever does not come is named with its rank and its log."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.record import Record
from chaos.base.wait import Deadline, DeadlineExpired, Patience
from chaos.faults.signals import kill, suspend
from chaos.history.event import Event
from chaos.history.ledger import Ledger
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.processes import FoundProcess
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.parts.fault import PlannedFault
from chaos.run.inject.injection import Injection
from chaos.run.launch.attempt import Attempt, JobFailed, Watch
from chaos.run.launch.channel import Hello, RefusedCaller
from chaos.scenario.models.scenario import Deadlines
from tests.unit.conftest import FakeClock
from tests.unit.run.fakes import (
    LAUNCHER,
    FakeChannel,
    FakeConnection,
    FakeJob,
    Watcher,
    at_barrier,
    found,
    identity,
    planned,
)

pytestmark = pytest.mark.processes

LIMITS = Deadlines(run=60.0, start=18.0, fault=12.0, land=3.0, end=30.0)
"""In seconds of the scripted clock. Each look at the launch is real work, so short deadlines make short tests."""


class ScriptedClock(FakeClock):
    """Whenever somebody waits, the next thing of the script happens."""

    def __init__(self) -> None:
        super().__init__()
        self.script: deque[Callable[[], object]] = deque()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.script:
            self.script.popleft()()


class Launch:
    """One launch of four ranks: what a test makes happen in it, and what the harness recorded."""

    def __init__(
        self,
        run_dir: Path,
        history: HistoryWriter,
        *faults: PlannedFault,
        limits: Deadlines = LIMITS,
        size: int = 4,
        own_script: bool = False,
        replaced: Callable[[], None] = lambda: None,
    ) -> None:
        self.size = size
        self.job = FakeJob(size)
        self.channel = FakeChannel()
        self.clock = ScriptedClock()
        self.watcher = Watcher()
        self.run_dir = run_dir
        self.connections = {rank: FakeConnection() for rank in range(size)}
        self.records: dict[int, Record] = {}
        deadline = Deadline("run", limits.run, self.clock)
        self.injection = Injection(
            faults,
            {"kill": kill.KIND, "suspend": suspend.KIND},
            history=history,
            ledger=Ledger(run_dir / "undo.jsonl"),
            attempt="train",
            patience=Patience(limits.land, self.clock, (deadline,)),
            records=run_dir / "history",
        )
        watch = Watch(history, self.watcher, self.clock, limits, deadline, own_script=own_script, replaced=replaced)
        self.attempt = Attempt("train", size, self.job, self.channel, self.injection, run_dir, watch)  # type: ignore[arg-type]

    def follow(self, *script: Callable[[], object]) -> None:
        self.clock.script.extend(script)
        self.attempt.follow()

    def hello(self, *ranks: int, attempt: str = "train", pid: int | None = None) -> None:
        for rank in ranks:
            connection: Any = self.connections[rank]
            self.channel.messages.put(Hello(connection, attempt, rank, pid or identity(rank).pid))

    def join(self, *ranks: int) -> None:
        self.hello(*(ranks or range(4)))

    def step(self, number: int, *ranks: int, event: str = "step.begin") -> None:
        self.say(event, *ranks, step=number)

    def say(self, event: str, *ranks: int, **fields: Any) -> None:
        for rank in ranks or range(4):
            if rank not in self.records:
                self.records[rank] = Record(str(self.run_dir / "history"), run="r", attempt="train", rank=rank)
            self.records[rank].write(event, **fields)

    def reach(self, *ranks: int) -> None:
        for rank in ranks:
            self.channel.messages.put(at_barrier(self.connections[rank], rank))

    def end(self, *ranks: int, code: int = 0) -> None:
        for rank in ranks or range(4):
            self.job.statuses.setdefault(identity(rank), ExitStatus(code=code))

    def end_saying(self, event: str, *ranks: int, code: int = 0, **fields: Any) -> Callable[[], None]:
        def act() -> None:
            self.say(event, *ranks, **fields)
            self.end(*ranks, code=code)

        return act

    def recorded(self, name: str) -> list[Event]:
        read = read_history(self.run_dir / "history")
        assert read.problems == ()
        return read.select(name, writer="harness")


Make = Callable[..., Launch]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    (tmp_path / "history").mkdir()
    with HistoryWriter(tmp_path / "history" / "harness.jsonl", writer="harness", run="r", clock=FakeClock()) as history:
        yield lambda *faults, **options: Launch(tmp_path, history, *faults, **options)


def test_a_launch_without_faults_is_followed_to_its_end(make: Make) -> None:
    launch = make()
    launch.follow(launch.join, lambda: launch.step(1), lambda: launch.step(1, event="step.end"), launch.end)
    assert launch.attempt.ranks == {rank: identity(rank) for rank in range(4)}
    assert [(e.attempt, e.rank, e.pid, e.data) for e in launch.recorded("rank.found")] == [
        ("train", rank, 100 + rank, {"start_time": 1000 + rank, "ppid": LAUNCHER.pid}) for rank in range(4)
    ]
    exits = launch.recorded("rank.exit")
    assert [(e.rank, e.pid, e.data) for e in exits] == [
        (rank, 100 + rank, {"start_time": 1000 + rank, "signal": None, "code": 0}) for rank in range(4)
    ]
    assert launch.connections[2].answers == [{"message": "welcome", "armed": []}]


def test_a_fault_is_made_on_the_way_and_every_status_is_kept(make: Make) -> None:
    launch = make(planned(2))
    armed = [{"fault": "kill", "step": 5, "phase": "step.end"}]
    launch.follow(
        launch.join, lambda: launch.step(1), lambda: launch.reach(2), lambda: None, lambda: launch.end(0, 1, 3, code=1)
    )
    assert launch.connections[2].answers[0] == {"message": "welcome", "armed": armed}
    assert launch.connections[1].answers == [{"message": "welcome", "armed": []}]
    statuses = {event.rank: (event.data["signal"], event.data["code"]) for event in launch.recorded("rank.exit")}
    assert statuses == {0: (None, 1), 1: (None, 1), 2: (9, None), 3: (None, 1)}
    assert len(launch.recorded("fault.landed")) == 1


# What does not come.


def test_ranks_that_never_join_and_ranks_that_never_step_are_named(make: Make, tmp_path: Path) -> None:
    launch = make()
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(lambda: launch.join(0, 2, 3), lambda: launch.step(1, 0))
    assert (expired.value.name, expired.value.seconds) == ("start", 18.0)
    assert expired.value.detail == (
        "rank 1 never joined (rank 1: process 101 is alive, its agent has not called); "
        "ranks 2-3 (2 of 4) joined but have not begun their first step; "
        f"see {tmp_path / 'logs' / 'train'}"
    )


def test_ranks_that_wait_for_each_other_are_told_of_while_they_do(make: Make) -> None:
    launch = make(limits=LIMITS.model_copy(update={"run": 200.0, "end": 120.0}))
    with pytest.raises(DeadlineExpired):
        launch.follow(launch.join, lambda: launch.step(1), lambda: launch.step(2, 0))
    first, *_ = launch.watcher.notes
    assert first.startswith("train: nothing has moved for 10 s; deadline end runs out in ")
    assert "not exited: " in first and "rank 0: step 2" in first
    assert 2 < len(launch.watcher.notes) < 8


def test_a_rank_that_ends_before_the_first_step_ends_the_attempt_at_once(make: Make, tmp_path: Path) -> None:
    launch = make()
    began = launch.clock.now
    with pytest.raises(JobFailed) as failed:
        launch.follow(launch.join, lambda: launch.step(1, 0), lambda: launch.end(1, code=1))
    assert str(failed.value) == (
        "rank 1 ended with exit code 1 after 0.0 s, before every rank had begun its first step; see "
        f"{tmp_path / 'logs' / 'train' / 'worker_1.log'}"
    )
    assert launch.clock.now - began < 1e9
    assert launch.recorded("rank.exit")[0].rank == 1


def test_what_the_ranks_said_last_is_quoted_once_for_all_who_said_it(make: Make, tmp_path: Path) -> None:
    launch = make()
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    for rank in (0, 1):
        (logs / f"worker_{rank}.log").write_text(f"x.Timeout: rank {rank} waited 60 s for ranks [2] to join\n")
    (logs / "worker_3.log").write_text("KeyError: 'other'\n")
    with pytest.raises(JobFailed) as failed:
        launch.follow(launch.join, lambda: launch.end(0, 1, 3, code=1))
    assert (
        "3 of 4 ranks ended with exit code 1 after 0.0 s, before every rank had begun its first step, the first was "
        "rank 0: ranks 0-1 said: x.Timeout: rank 0 waited 60 s for ranks [2] to join; rank 3 said: KeyError: 'other'; "
    ) in str(failed.value)


def test_ranks_without_a_log_are_quoted_from_the_launchers(make: Make, tmp_path: Path) -> None:
    launch = make()
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    (logs / "msrun.log").write_text("ImportError: no numpy\n")
    with pytest.raises(JobFailed, match="ImportError: no numpy"):
        launch.follow(launch.join, lambda: launch.end(1, code=1))


def test_of_many_ranks_that_end_it_is_said_how_many_which_was_first_and_what_that_said(
    make: Make, tmp_path: Path
) -> None:
    launch = make(size=128)
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    for rank in range(128):
        (logs / f"worker_{rank}.log").write_text("ConnectionError: gone\n" if rank == 2 else "Timeout: waited\n")
    with pytest.raises(JobFailed) as failed:
        launch.follow(
            lambda: launch.join(*range(128)),
            lambda: launch.clock.sleep(80),
            lambda: launch.end(2, *range(4, 128), code=1),
        )
    text = str(failed.value)
    assert re.match(
        r"125 of 128 ranks ended with exit code 1 after 80\.\d s, before every rank had begun its first step, the "
        r"first was rank 2: ConnectionError: gone; ranks 4-127 said: Timeout: waited; see .*/logs/train$",
        text,
    )
    assert len(text) < 300 + len(str(logs))


NO_MODEL = "the script never calls Model.train, and chaos recognised no training loop of its own in it"
LINES = "add the three lines of chaos_steps to the loop"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, f"{NO_MODEL}; {LINES}"),
        ({"model_train": True}, "the script calls Model.train, which has trained no step"),
        ({"lines": True}, "the script imports chaos_steps and never calls step_begins()"),
        ({"gradients": True}, "the script computes gradients, and no optimizer that chaos knows updates"),
    ],
)
def test_a_job_that_ends_well_without_a_step_is_named_and_its_log_is_not_quoted(
    make: Make, tmp_path: Path, fields: dict[str, bool], reason: str
) -> None:
    launch = make()
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    (logs / "worker_0.log").write_text("[INFO] DISTRIBUTED(1,python): the network thread has ended\n")
    said = {"model_train": False, "lines": False, "gradients": False, **fields}
    with pytest.raises(JobFailed) as failed:
        launch.follow(launch.join, launch.end_saying("steps.none", **said))
    text = str(failed.value)
    assert f"first was rank 0: no step was seen: {reason}" in text
    assert "INFO" not in text


def test_a_job_that_fails_without_a_step_is_known_by_its_error(make: Make, tmp_path: Path) -> None:
    launch = make()
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    (logs / "worker_0.log").write_text("train.py: error: unrecognized arguments: --fast\n")
    said = {"model_train": False, "lines": False, "gradients": False}
    with pytest.raises(JobFailed, match="unrecognized arguments: --fast") as failed:
        launch.follow(launch.join, launch.end_saying("steps.none", 0, code=2, **said))
    assert "no step was seen" not in str(failed.value)


def test_steps_that_an_agent_cannot_count_end_the_attempt_with_what_to_do(make: Make) -> None:
    launch = make(planned(2))
    with pytest.raises(JobFailed) as failed:
        launch.follow(
            launch.join,
            lambda: launch.step(1),
            lambda: launch.say("steps.unclear", 1, 3, reason="there are two optimizers, Adam and SGD"),
        )
    assert str(failed.value).startswith(
        f"the steps of ranks 1,3 cannot be counted: there are two optimizers, Adam and SGD; {LINES}"
    )


@pytest.mark.parametrize("own_script", [True, False])
@pytest.mark.parametrize("trains", [True, False])
def test_a_script_that_comes_to_no_step_in_time_may_have_a_loop_of_its_own(
    make: Make, own_script: bool, trains: bool
) -> None:
    launch = make(own_script=own_script)
    if trains:
        launch.say("train.begin", initial_step=0)
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(launch.join)
    assert (f"{NO_MODEL} until now; if it has a loop, {LINES}" in str(expired.value)) is (own_script and not trains)
    assert all(LINES not in note for note in launch.watcher.notes)


def test_of_ranks_that_never_joined_no_loop_is_claimed(make: Make) -> None:
    launch = make(own_script=True)
    with pytest.raises(DeadlineExpired, match="never joined") as expired:
        launch.follow()
    assert "no step was seen" not in str(expired.value)


def test_a_fault_that_was_missed_names_the_phase_that_no_step_comes_to(make: Make) -> None:
    launch = make(planned(2))
    launch.follow(
        launch.join,
        lambda: launch.step(1),
        lambda: launch.say("phase.unreachable", phase="optimizer.update", reason="the step is compiled"),
        launch.end,
    )
    (missed,) = launch.recorded("fault.missed")
    assert missed.data["reason"].startswith(
        "the job has ended; no step comes to optimizer.update: the step is compiled; the fault still waited for step 5"
    )


def test_one_look_at_the_processes_serves_all_ranks_that_have_come(make: Make) -> None:
    launch = make(size=128)
    launch.join(*range(128))
    launch.attempt.look()
    assert len(launch.attempt.ranks) == 128
    assert launch.job.looks == 1
    launch.attempt.look()
    assert launch.job.looks == 1, "nobody has come since"


def test_ends_are_seen_while_others_introduce_themselves_without_pause(make: Make) -> None:
    """However many go on calling: a look takes those that are there, and then sees who has ended."""
    launch = make(size=128)
    launch.join(0)
    launch.attempt.look()
    launch.end(0, code=1)
    more = iter(range(1, 128))

    def calls_again(event: Event) -> None:
        if event.event == "rank.found" and (rank := next(more, None)) is not None:
            launch.join(rank)

    launch.watcher.on_event = calls_again
    launch.join(next(more))
    launch.attempt.look()
    assert [event.rank for event in launch.recorded("rank.exit")] == [0]
    assert len(launch.attempt.ranks) == 2


def test_as_long_as_a_rank_lives_nobody_looks_for_other_processes(make: Make) -> None:
    launch = make()
    launch.job.statuses[LAUNCHER] = ExitStatus(code=0)
    launch.follow(
        lambda: launch.join(0),
        *[lambda: None] * 10,
        lambda: launch.join(1, 2, 3),
        lambda: launch.step(1),
        launch.end,
    )
    before = launch.job.looks
    assert before <= 4  # one before anybody has come, and one for each crowd


def test_a_rank_that_was_refused_or_has_no_process_is_told_apart(make: Make) -> None:
    launch = make()
    launch.job.statuses[identity(3)] = ExitStatus(code=0)
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(lambda: launch.join(0, 1), lambda: launch.hello(2, pid=7))
    assert "rank 2 was refused: process 7 is not rank 2 of this job; rank 3 has no process" in expired.value.detail


def test_a_launcher_that_ends_and_leaves_nothing_ends_the_attempt_at_once(make: Make, tmp_path: Path) -> None:
    launch = make()
    launch.job.size = 0
    began = launch.clock.now
    with pytest.raises(JobFailed) as failed:
        launch.follow(lambda: launch.job.statuses.update({LAUNCHER: ExitStatus(code=1)}))
    assert str(failed.value) == (
        f"the launcher ended (exit code 1), and ranks 0-3 never joined; see {tmp_path / 'logs' / 'train'}"
    )
    assert launch.clock.now - began < 1e9


def test_a_launcher_may_end_when_it_has_started_the_ranks(make: Make) -> None:
    launch = make()
    launch.job.statuses[LAUNCHER] = ExitStatus(code=0)
    launch.follow(*[lambda: None] * 10, launch.join, lambda: launch.step(1), launch.end)
    assert len(launch.recorded("rank.exit")) == 4


def test_a_process_that_hides_for_a_moment_is_not_taken_for_gone(make: Make) -> None:
    """One that is just executing its program shows no environment, so one look is not enough."""
    launch = make()
    launch.job.statuses[LAUNCHER] = ExitStatus(code=0)

    def appear(size: int) -> Callable[[], None]:
        return lambda: setattr(launch.job, "size", size)

    launch.follow(appear(0), appear(4), appear(0), appear(4), launch.join, lambda: launch.step(1), launch.end)
    assert len(launch.recorded("rank.exit")) == 4


def test_a_fault_that_never_fires_is_named_with_where_the_ranks_are(make: Make, tmp_path: Path) -> None:
    launch = make(planned(2))
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(
            launch.join, lambda: launch.step(1), lambda: launch.step(3, 0, 1, 2), lambda: launch.end(3, code=1)
        )
    assert (expired.value.name, expired.value.seconds) == ("fault", 12.0)
    assert expired.value.detail == (
        "fault kill waits for step 5 step.end of rank 2; ranks 0-2: step 3; rank 3: exit code 1; "
        f"see {tmp_path / 'logs' / 'train'}"
    )


def test_ranks_that_never_exit_are_named_with_their_step(make: Make, tmp_path: Path) -> None:
    launch = make()
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(launch.join, lambda: launch.step(1), lambda: launch.step(7, 3), lambda: launch.end(0, 2))
    assert (expired.value.name, expired.value.seconds) == ("end", 30.0)
    assert expired.value.detail == f"not exited: rank 1: step 1; rank 3: step 7; see {tmp_path / 'logs' / 'train'}"


def test_a_launcher_that_outlives_its_ranks_is_named(make: Make, tmp_path: Path) -> None:
    launch = make()
    launch.job.launcher_stays = True
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(launch.join, lambda: launch.step(1), launch.end)
    assert expired.value.detail == f"not exited: the launcher; see {tmp_path / 'logs' / 'train'}"


def test_the_deadline_of_the_run_comes_first_where_it_is_shorter(make: Make) -> None:
    launch = make(limits=LIMITS.model_copy(update={"run": 6.0}))
    with pytest.raises(DeadlineExpired) as expired:
        launch.follow(lambda: launch.join(0, 1))
    assert (expired.value.name, expired.value.seconds) == ("run", 6.0)
    assert expired.value.detail.startswith("while waiting for 'start': ranks 2-3 (2 of 4) never joined")


def test_a_job_that_ends_before_its_fault_is_due_misses_it(make: Make) -> None:
    launch = make(planned(2))
    launch.follow(launch.join, lambda: launch.step(1), launch.end)
    (missed,) = launch.recorded("fault.missed")
    assert missed.data["reason"] == ("the job has ended; the fault still waited for step 5 step.end of rank 2")


# Who is who.


@pytest.mark.parametrize(
    ("rank", "attempt", "pid"),
    [(2, "train", 103), (2, "train", 50), (2, "train", 999), (2, "resume", 102), (3, "train", 102)],
)
def test_an_agent_in_the_wrong_process_is_a_stranger(make: Make, rank: int, attempt: str, pid: int) -> None:
    launch = make()
    launch.job.others = [replace(found(0), identity=LAUNCHER, role="launcher", rank=None)]
    launch.hello(rank, attempt=attempt, pid=pid)
    launch.attempt.look()
    (refused,) = launch.recorded("caller.refused")
    assert (refused.pid, refused.data) == (pid, {"channel": "agents", "what": f"is not rank {rank} of this job"})
    assert launch.attempt.ranks == {}
    assert launch.connections[rank].closed
    assert launch.connections[rank].answers == []


def test_a_new_process_of_a_rank_waits_until_the_harness_has_looked(make: Make) -> None:
    answered: list[int] = []
    launch: Launch = make(replaced=lambda: answered.append(len(launch.connections[2].answers)))
    launch.hello(2)
    launch.attempt.look()
    assert answered == []
    launch.hello(2)
    launch.attempt.look()
    assert answered == [1]
    assert len(launch.connections[2].answers) == 2


def test_a_helper_that_inherited_a_ranks_environment_is_not_the_rank(make: Make) -> None:
    launch = make()
    helper = ProcessIdentity(500, 9, "boot")
    launch.job.others = [FoundProcess(helper, 102, 102, "other", None, "train", ("python", "worker.py"))]
    launch.hello(2, pid=500)
    launch.attempt.look()
    assert launch.attempt.ranks == {}


def test_strangers_at_the_channel_are_recorded(make: Make) -> None:
    launch = make()
    launch.channel.messages.put(RefusedCaller(77, "garbage"))
    launch.attempt.look()
    (refused,) = launch.recorded("caller.refused")
    assert (refused.attempt, refused.pid, refused.data) == ("train", 77, {"channel": "agents", "what": "garbage"})


def test_launcher_and_scheduler_are_recorded_once(make: Make) -> None:
    launch = make()
    scheduler = ProcessIdentity(51, 2, "boot")
    launch.job.others = [
        replace(found(0), identity=LAUNCHER, role="launcher", rank=None),
        replace(found(0), identity=scheduler, role="scheduler", rank=None),
    ]
    launch.join()
    launch.attempt.look()
    assert [(event.pid, event.data) for event in launch.recorded("launcher.found")] == [
        (50, {"role": "launcher", "start_time": 1}),
        (51, {"role": "scheduler", "start_time": 2}),
    ]


# What triggers are told.


def test_time_is_counted_from_when_every_rank_began_its_first_step(make: Make) -> None:
    launch = make(planned(2, trigger={"elapsed": 10.0}))
    launch.join()
    launch.step(1, 0, 1, 2)
    launch.attempt.look()
    launch.clock.now += int(60e9)
    launch.attempt.look()
    assert launch.injection.known.elapsed is None
    launch.step(1, 3)
    launch.attempt.look()
    launch.clock.now += int(9.9e9)
    launch.attempt.look()
    assert launch.job.signals == []
    launch.clock.now += int(0.2e9)
    launch.attempt.look()
    assert [pid for pid, _ in launch.job.signals] == [102]


@pytest.mark.parametrize(("rank", "fires"), [(None, True), (1, True), (2, False)])
def test_a_log_line_is_known_with_the_rank_that_wrote_it(
    make: Make, tmp_path: Path, rank: int | None, fires: bool
) -> None:
    log = {"contains": "loss is"} | ({} if rank is None else {"rank": rank})
    launch = make(planned(3, trigger={"log": log}))
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    launch.join()
    (logs / "worker_1.log").write_text("epoch 1, loss i")
    launch.attempt.look()
    with (logs / "worker_1.log").open("a") as file:
        file.write("s 2.3\n")
    launch.attempt.look()
    assert bool(launch.job.signals) is fires


def test_the_live_view_is_shown_the_ranks_events_and_the_harnesss(make: Make) -> None:
    launch = make()
    launch.follow(launch.join, lambda: launch.step(1), launch.end)
    shown = [(event.event, event.rank) for event in launch.watcher.events if event.rank == 2]
    assert shown == [("rank.found", 2), ("writer.start", 2), ("step.begin", 2), ("rank.exit", 2)]


# Its end.


def test_a_suspended_rank_is_not_waited_for(make: Make) -> None:
    launch = make(planned(2, kind="suspend"))
    launch.job.on_signal = lambda job, process, number: job.states.update({process: "stopped"})
    launch.follow(
        launch.join, lambda: launch.step(1), lambda: launch.reach(2), lambda: None, lambda: launch.end(0, 1, 3, code=1)
    )
    began = launch.clock.now
    launch.attempt.note_leftovers(5.0)
    assert launch.recorded("job.leftovers") == []
    assert launch.clock.now - began < 1e9
    assert {event.rank for event in launch.recorded("rank.exit")} == {0, 1, 3}
    launch.end(2, code=1)
    launch.attempt.record_late_exits()
    assert launch.recorded("rank.exit")[-1].rank == 2


def test_processes_that_stay_after_the_last_rank_are_recorded(make: Make) -> None:
    launch = make()
    helper = FoundProcess(ProcessIdentity(500, 9, "boot"), 1, 102, "other", None, "train", ("python", "worker.py"))
    launch.job.others = [helper]
    launch.follow(launch.join, lambda: launch.step(1), launch.end)
    began = launch.clock.now
    launch.attempt.note_leftovers(5.0)
    assert launch.clock.now - began >= 5e9
    (left,) = launch.recorded("job.leftovers")
    assert left.data == {"orphans": [{"pid": 500, "cmdline": ["python", "worker.py"]}]}


def test_how_the_launcher_ended_is_recorded_at_last(make: Make) -> None:
    launch = make()
    launch.attempt.record_late_exits()
    assert launch.recorded("launcher.exit") == []
    launch.job.statuses[LAUNCHER] = ExitStatus(signal=15)
    launch.attempt.record_late_exits()
    (ended,) = launch.recorded("launcher.exit")
    assert (ended.pid, ended.data) == (50, {"role": "launcher", "signal": 15, "code": None})


def test_a_status_that_nobody_knows_is_recorded_as_such(make: Make) -> None:
    launch = make()
    launch.join()
    launch.attempt.look()
    launch.job.statuses[identity(1)] = ExitStatus()
    launch.attempt.look()
    launch.attempt.look()
    (ended,) = launch.recorded("rank.exit")
    assert (ended.rank, ended.data) == (1, {"start_time": 1001, "signal": None, "code": None})


def test_a_rank_that_is_started_again_has_two_processes_and_the_job_goes_on(make: Make) -> None:
    """As long as the launcher runs, it may start ranks again: the job has not ended when all of them have."""
    launch = make(planned(2))
    launch.job.launcher_stays = True
    again = {rank: ProcessIdentity(200 + rank, 2000 + rank, "boot") for rank in range(4)}

    def start_again() -> None:
        launch.job.others = [replace(found(rank), identity=process) for rank, process in again.items()]
        for rank, process in again.items():
            launch.hello(rank, pid=process.pid)

    def end_again() -> None:
        launch.job.statuses |= {process: ExitStatus(code=0) for process in again.values()}

    launch.follow(
        launch.join,
        lambda: launch.step(1),
        lambda: launch.reach(2),
        lambda: None,
        lambda: launch.end(0, 1, 3, code=1),
        lambda: None,  # all have ended
        start_again,
        end_again,
        lambda: None,  # all have ended, and the launcher still has to say so
        lambda: launch.job.statuses.update({LAUNCHER: ExitStatus(code=0)}),
    )
    assert launch.attempt.ranks == again
    assert [(e.rank, e.pid, e.data["start_time"]) for e in launch.recorded("rank.found")] == [
        (rank, first + rank, start + rank) for first, start in ((100, 1000), (200, 2000)) for rank in range(4)
    ]
    exits = [(e.rank, e.pid, e.data["signal"], e.data["code"]) for e in launch.recorded("rank.exit")]
    assert sorted(exits, key=lambda one: str(one[1])) == [
        (0, 100, None, 1),
        (1, 101, None, 1),
        (2, 102, 9, None),
        (3, 103, None, 1),
        *((rank, 200 + rank, None, 0) for rank in range(4)),
    ]
