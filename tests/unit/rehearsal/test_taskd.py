"""The cluster agent's stand-in against a launcher that does what a test says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from chaos.rehearsal import finished_ranks
from chaos.rehearsal.taskd.agent import ClusterAgent
from chaos.rehearsal.taskd.dialogue import Dialogue
from chaos.rehearsal.taskd.settings import PROFILES, Settings, SettingsError, Timings, read_settings
from chaos.rehearsal.taskd.strategies import PRIORITY, Situation, choose, offered_after
from chaos.rehearsal.ttp.timings import PROFILES as OF_THE_SDK

SETTINGS = {
    "REHEARSAL_STRATEGIES": "exit",
    "REHEARSAL_RESTART_LIMIT": "1",
    "REHEARSAL_RANKS": "4",
    "REHEARSAL_NODES": "1",
    "MS_ENABLE_TFT": "{RSC:1}",
}
FAST = Timings(monitor=0.001, answer=0.05, leave=0.01)
PATIENT = Timings(monitor=0.001, answer=30.0, leave=0.01)
"""For what has to come before a limit has passed, on a machine however busy."""


@dataclass
class Launcher:
    """msrun's four functions over processes that are only numbers. ``script`` is played one entry a look."""

    logs: Path | None = None
    script: list[Callable[[], None]] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    status: dict[int, int | None] = field(default_factory=dict)
    pid: dict[int, int] = field(default_factory=dict)
    started: int = 0
    size: int = 4

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "KILL_WORKER": self.kill,
            "START_ALL_WORKER": self.start_all,
            "START_WORKER_LIST": self.start,
            "MONITOR": self.monitor,
        }

    def kill(self, pids: list[int]) -> int:
        self.calls.append(("kill", pids))
        for rank, pid in self.pid.items():
            if (pid in pids or -1 in pids) and self.status[rank] is None:
                self.status[rank] = 300
        return 0

    def start_all(self) -> int:
        self.calls.append(("start all", None))
        return self._start(range(self.size))

    def start(self, ranks: list[int]) -> int:
        self.calls.append(("start", ranks))
        return self._start(ranks)

    def _start(self, ranks: Any) -> int:
        for rank in ranks:
            assert self.status.get(rank, 300) is not None, f"rank {rank} still runs"
            self.started += 1
            self.status[rank], self.pid[rank] = None, 100 + self.started
            if self.logs:
                (self.logs / f"worker_{rank}.log").write_text(f"process {self.started}")
        return 0

    def monitor(self, ranks: list[int]) -> dict[int, dict[str, Any]]:
        assert ranks == [-1]
        if self.script and self.pid:
            self.script.pop(0)()
        if not self.pid:
            return {rank: {"pid": None, "status": 200, "global_rank": rank} for rank in range(self.size)}
        return {rank: {"pid": self.pid[rank], "status": self.status[rank], "global_rank": rank} for rank in self.pid}

    def end(self, *ranks: int, status: int = 0) -> Callable[[], None]:
        def do() -> None:
            self.status.update(dict.fromkeys(ranks or range(self.size), status))

        return do


def run(launcher: Launcher, timings: Timings = FAST, /, **changes: str) -> int:
    settings = read_settings({**SETTINGS, "REHEARSAL_LOGS": str(launcher.logs or ""), **changes})
    agent = ClusterAgent(Settings(**{**settings.__dict__, "timings": timings}))
    for name, function in launcher.functions().items():
        agent.register(name, function)
    return agent.run()


def test_a_job_that_trains_to_its_end_is_only_watched() -> None:
    launcher = Launcher()
    launcher.script = [lambda: None, launcher.end(0, 2), launcher.end()]
    assert run(launcher) == 0
    assert [name for name, _ in launcher.calls] == ["start all"]


def test_all_ranks_are_killed_and_started_again_when_one_is_lost(tmp_path: Path, capsys: Any) -> None:
    launcher = Launcher(tmp_path)
    launcher.script = [lambda: None, launcher.end(2, status=300)]
    end = launcher.end()

    def end_the_second_round() -> None:
        if launcher.started == 8:
            end()

    launcher.script += [end_the_second_round] * 20
    assert run(launcher) == 0
    assert [name for name, _ in launcher.calls] == ["start all", "kill", "start all"]
    # What the first processes wrote has another name, and is not written over.
    assert (tmp_path / "worker_2.log").read_text() == "process 7"
    assert sorted(path.read_text() for path in tmp_path.glob("worker_2.before-*.log")) == ["process 3"]
    said = capsys.readouterr().out
    assert "taskd: rank 2 (process 103) ended" in said
    assert "taskd: restart 1 of 1: kill all ranks" in said


def test_past_the_limit_the_job_is_ended_and_the_reason_said(capsys: Any) -> None:
    launcher = Launcher()
    launcher.script = [launcher.end(2, status=300)] + [lambda: None] * 4 + [launcher.end(1, status=1)]
    assert run(launcher) == 1
    assert all(status is not None for status in launcher.status.values())
    assert "restart limit 1 reached; rank 1 (process 106) lost: end the job" in capsys.readouterr().out


def test_without_rescheduling_a_lost_rank_ends_the_job(capsys: Any) -> None:
    launcher = Launcher()
    launcher.script = [launcher.end(3, status=1)]
    assert run(launcher, MS_ENABLE_TFT="{TRE:1}") == 1
    assert launcher.calls[-1] == ("kill", [-1])
    assert "rank 3 (process 104) lost and no mechanism is left" in capsys.readouterr().out


def test_of_very_many_lost_ranks_it_is_said_which_they_are(capsys: Any) -> None:
    launcher = Launcher(size=40)

    def end_most() -> None:
        launcher.status.update(dict.fromkeys(range(3, 40), 1))

    launcher.script = [end_most]
    assert run(launcher, REHEARSAL_RANKS="40", MS_ENABLE_TFT="{TRE:1}") == 1
    assert "ranks 3-39 (37 in all) lost and no mechanism is left" in capsys.readouterr().out


def test_a_launcher_that_helpers_over_too_little_is_named(capsys: Any) -> None:
    agent = ClusterAgent(read_settings(SETTINGS))
    agent.register("MONITOR", lambda ranks: {})
    assert agent.run() == 1
    assert "did not hand over KILL_WORKER, START_ALL_WORKER, START_WORKER_LIST" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"REHEARSAL_RESTART_LIMIT": "many"}, "REHEARSAL_RESTART_LIMIT is 'many', not a number"),
        ({"MS_ENABLE_TFT": "{TTP:1}"}, "MS_TFT_IP is not set"),
        ({"MS_ENABLE_TFT": "{TTP:1}", "MS_TFT_IP": "127.0.0.1", "MS_TFT_PORT": ""}, "MS_TFT_PORT is ''"),
        ({"REHEARSAL_STRATEGIES": "retry,elastic-training"}, "elastic-training is for PyTorch only"),
        ({"REHEARSAL_TIMINGS": "slow"}, "REHEARSAL_TIMINGS is 'slow', not one of vendor, fast"),
    ],
)
def test_settings_that_cannot_work_are_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings({**SETTINGS, **change})


# Which strategy is chosen.


def chosen_by_hand(configured: tuple[str, ...], offered: tuple[str, ...], process: bool, nodes: int) -> str:
    """MindCluster's decision, as its documents tell it: written apart from the code under test."""
    if "retry" in configured and "retry" in offered and not process:
        return "retry"
    if "recover" in offered:
        if "recover-in-place" in configured and nodes == 1:
            return "recover-in-place"
        if "recover" in configured:
            return "recover"
    if "dump" in configured and "dump" in offered:
        return "dump"
    return "exit"


FIVE = ("retry", "recover-in-place", "recover", "dump", "exit")
OFFERS = [
    ("exit",),
    ("exit", "dump"),
    ("exit", "dump", "retry"),
    ("exit", "dump", "recover"),
    ("exit", "dump", "retry", "recover"),
]


@pytest.mark.parametrize("configured", [subset for size in range(6) for subset in combinations(FIVE, size)])
def test_every_set_of_strategies_is_used_in_order_of_priority(configured: tuple[str, ...]) -> None:
    for offered in OFFERS:
        for process in (False, True):
            for nodes in (1, 2):
                now = Situation(configured, offered, process, nodes)
                assert choose(now) == chosen_by_hand(configured, offered, process, nodes), (now,)


def test_the_priority_is_the_documented_one() -> None:
    assert PRIORITY == ("retry", "recover-in-place", "recover", "elastic-training", "dump", "exit")


def test_what_has_failed_is_not_chosen_again() -> None:
    offered: tuple[str, ...] = ("exit", "dump", "retry", "recover")
    assert choose(Situation(FIVE, offered, False, 1)) == "retry"
    assert choose(Situation(FIVE, offered, False, 1, {"retry"})) == "recover-in-place"
    offered = offered_after(406, offered)
    assert choose(Situation(FIVE, offered, True, 1, {"retry", "recover-in-place"})) == "dump"
    offered = offered_after(499, offered)
    assert choose(Situation(FIVE, offered, True, 1, {"retry", "recover-in-place", "dump"})) == "exit"


# The dialogue with the SDK's controller.


class Controller:
    """``mindio_ttp`` as the agent uses it: keeps what it was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[tuple[str, Any]] = []
        self.callbacks: dict[str, Callable[..., int]] = {}
        package, steering, framework = (
            ModuleType(name) for name in ("mindio_ttp", "mindio_ttp.controller_ttp", "mindio_ttp.framework_ttp")
        )
        for name in ("stop_train", "on_global_rank", "change_strategy"):
            setattr(steering, f"tft_notify_controller_{name}", lambda what, name=name: self.told.append((name, what)))
        steering.tft_register_mindx_callback = self.callbacks.__setitem__  # type: ignore[attr-defined]
        framework.tft_init_controller = lambda *how: self.told.append(("init", how))  # type: ignore[attr-defined]
        framework.tft_start_controller = lambda *how: self.told.append(("start", how))  # type: ignore[attr-defined]
        framework.tft_destroy_controller = lambda *how: self.told.append(("destroy", how))  # type: ignore[attr-defined]
        package.controller_ttp, package.framework_ttp = steering, framework  # type: ignore[attr-defined]
        for module in (package, steering, framework):
            monkeypatch.setitem(sys.modules, module.__name__, module)


SDK = {"MS_ENABLE_TFT": "{UCE:1,ARF:1,TTP:1}", "MS_TFT_IP": "127.0.0.1", "MS_TFT_PORT": "20001"}


def talk(monkeypatch: pytest.MonkeyPatch, strategies: str, nodes: str = "1", **how: Any) -> tuple[Controller, Dialogue]:
    controller = Controller(monkeypatch)
    environment = {**SETTINGS, **SDK, "REHEARSAL_STRATEGIES": strategies, "REHEARSAL_NODES": nodes}
    dialogue = Dialogue(read_settings(environment), lambda text: None, **how)
    dialogue.start()
    return controller, dialogue


def test_the_controller_is_hosted_outside_of_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, _ = talk(monkeypatch, "recover")
    assert controller.told == [("init", (-1, 4, False, True)), ("start", ("127.0.0.1", 20001, False, ""))]
    assert set(controller.callbacks) == {
        "report_fault_ranks",
        "report_stop_complete",
        "report_strategies",
        "report_result",
    }


@pytest.mark.parametrize("more", [(), ({2: "error_code"},)])
def test_lost_ranks_are_started_again_only_when_strategies_have_been_offered(
    monkeypatch: pytest.MonkeyPatch, more: tuple[Any, ...]
) -> None:
    """Later SDKs tell one thing more about faulty ranks."""
    controller, dialogue = talk(monkeypatch, "recover,dump")
    report = controller.callbacks
    controller.told.clear()
    assert report["report_fault_ranks"]({2: 1}, *more) == 0
    assert report["report_stop_complete"](0, "stopped", {2: 1}) == 0
    assert dialogue.orders.empty()
    assert report["report_strategies"]({2: 1}, ["exit", "dump", "retry", "recover"]) == 0
    assert controller.told == [("stop_train", {2: 1}), ("on_global_rank", {2: 1}), ("change_strategy", "recover")]
    assert dialogue.orders.get_nowait() == (2,)
    assert report["report_result"](0, "ok", {}, "recover") == 0
    assert not dialogue.heard


def test_after_a_dump_the_controller_is_still_at_work_until_the_ranks_have_exited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, dialogue = talk(monkeypatch, "dump,exit")
    report = controller.callbacks
    report["report_fault_ranks"]({2: 1})
    report["report_strategies"]({2: 1}, ["exit", "dump", "recover"])
    report["report_result"](0, "do dump success", {2: 1}, "dump")
    assert dialogue.heard
    assert not dialogue.gives_up([1, 2])  # rank 1 is about to exit


@pytest.mark.parametrize(("strategies", "ends"), [("dump,exit", True), ("exit", True), ("recover,dump,exit", False)])
def test_a_stopped_process_is_not_waited_for_once_the_job_is_to_end(
    monkeypatch: pytest.MonkeyPatch, strategies: str, ends: bool
) -> None:
    controller, dialogue = talk(monkeypatch, strategies)
    assert not dialogue.gives_up([2])
    controller.callbacks["report_fault_ranks"]({2: 1})
    assert not dialogue.gives_up([2])
    controller.callbacks["report_strategies"]({2: 1}, ["exit", "dump", "recover"])
    assert dialogue.gives_up([2]) is ends


@pytest.mark.parametrize(
    ("heard", "over", "leave", "acts"),
    [
        (True, False, 0.0, True),
        (False, False, 0.0, True),  # it may yet notice
        (True, True, 60.0, True),  # told to exit, they are about to
        (True, True, 0.0, False),
    ],
)
def test_ranks_that_are_left_when_the_job_is_over_are_given_their_own_time(
    heard: bool, over: bool, leave: float, acts: bool
) -> None:
    settings = read_settings(SETTINGS)
    agent = ClusterAgent(Settings(**{**settings.__dict__, "timings": Timings(0.001, 60.0, leave)}))
    agent._dialogue = cast(Dialogue, SimpleNamespace(heard=heard, gives_up=lambda ranks: over))
    agent._dead_since = time.monotonic()
    assert agent._may_still_act([3]) is acts


def test_that_time_begins_when_the_job_is_over_and_not_with_the_first_death() -> None:
    settings = read_settings(SETTINGS)
    agent = ClusterAgent(Settings(**{**settings.__dict__, "timings": Timings(0.001, 60.0, 30.0)}))
    over: list[bool] = [False]
    agent._dialogue = cast(Dialogue, SimpleNamespace(heard=True, gives_up=lambda ranks: over[0]))
    agent._dead_since = time.monotonic() - 210.0  # a recovery was tried for so long
    assert agent._may_still_act([3])
    over[0] = True
    assert agent._may_still_act([3])
    assert agent._over_since is not None
    agent._over_since -= 31.0
    assert not agent._may_still_act([3])
    over[0] = False
    assert agent._may_still_act([3]) and agent._over_since is None


def test_a_retry_that_fails_is_followed_by_a_restart_in_place_and_then_by_a_dump(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due: list[Any] = []
    controller, dialogue = talk(
        monkeypatch,
        "retry,recover-in-place,recover,dump,exit",
        later=lambda seconds, *call: due.append((seconds, *call)),
    )
    report = controller.callbacks
    controller.told.clear()
    report["report_strategies"]({1: 0}, ["exit", "dump", "retry", "recover"])
    assert dialogue.orders.empty()
    controller.told.clear()
    report["report_result"](405, "retry failed", {1: 1}, "retry")
    assert controller.told == []  # an answer from within the call would be lost
    ((seconds, answer, faults),) = due
    answer(faults)
    assert (seconds, controller.told) == (0.1, [("on_global_rank", {1: 1})])
    report["report_strategies"]({1: 1}, ["exit", "dump", "recover"])
    assert dialogue.orders.get_nowait() == (1,)
    report["report_result"](406, "recover failed", {1: 0, 3: 1}, "recover")
    report["report_result"](499, "dump failed", {1: 0, 3: 1}, "dump")
    assert [what for name, what in controller.told if name == "change_strategy"] == ["recover", "dump"]
    assert dialogue.orders.empty()
    assert dialogue.gives_up([1, 3]), "after a dump that failed the controller ends the ranks unless it is told to"


def test_faults_of_several_nodes_are_not_repaired_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, dialogue = talk(monkeypatch, "recover-in-place,dump", nodes="2")
    controller.callbacks["report_strategies"]({1: 1, 2: 1}, ["exit", "dump", "recover"])
    assert (controller.told[-1], dialogue.orders.empty()) == (("change_strategy", "dump"), True)


def test_a_second_fault_is_a_new_situation(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, dialogue = talk(monkeypatch, "retry,recover")
    report = controller.callbacks
    for rank in (1, 3):
        report["report_fault_ranks"]({rank: 1})
        report["report_strategies"]({rank: 1}, ["exit", "dump", "recover"])
        assert dialogue.orders.get_nowait() == (rank,)
        report["report_result"](0, "ok", {}, "recover")


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run's private directory, as the processes of a job know it."""
    configuration = {"run": "run-1", "attempt": "train", "history": str(tmp_path), "secret": str(tmp_path / "secret")}
    (tmp_path / "agent.json").write_text(json.dumps(configuration))
    monkeypatch.setenv("CHAOS_AGENT", str(tmp_path / "agent.json"))


@pytest.mark.usefixtures("private")
def test_a_lost_rank_that_no_controller_notices_ends_the_job(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    Controller(monkeypatch)
    launcher = Launcher()
    launcher.script = [launcher.end(1, status=1)]
    assert run(launcher, **SDK) == 1
    assert "rank 1 (process 102) lost and no mechanism is left" in capsys.readouterr().out
    assert launcher.calls[-1] == ("kill", [-1])


@pytest.mark.parametrize(
    ("strategies", "nodes", "fault", "again"),
    [
        ("recover", "2", {2: 1}, (2, 3)),
        ("recover", "1", {2: 1}, (2,)),
        ("recover-in-place", "2", {2: 1}, (2,)),
        ("recover-in-place,recover", "2", {2: 1}, (2,)),
        ("recover-in-place,recover", "2", {1: 1, 2: 1}, (0, 1, 2, 3)),
        ("retry,recover", "2", {2: 0}, (2,)),
    ],
)
def test_with_recover_a_node_is_moved_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, strategies: str, nodes: str, fault: dict[int, int], again: tuple[int, ...]
) -> None:
    controller, dialogue = talk(monkeypatch, strategies, nodes)
    report = controller.callbacks
    report["report_fault_ranks"](dict(fault))
    report["report_stop_complete"](0, "stopped", dict(fault))
    assert controller.told[-1] == ("on_global_rank", {**dict.fromkeys(again, 1), **fault})
    report["report_strategies"](dict(fault), ["exit", "dump", "recover"])
    assert dialogue.orders.get_nowait() == again


@pytest.mark.usefixtures("private")
def test_a_job_does_not_end_before_the_controller_has_told_how_its_last_strategy_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, launcher = Controller(monkeypatch), Launcher()

    def fails() -> None:
        controller.callbacks["report_fault_ranks"]({1: 0})

    def told() -> None:
        controller.callbacks["report_result"](0, "Mindio do repair operation ok", {}, "retry")

    launcher.script = [
        fails,
        launcher.end(),
        lambda: None,
        told,
    ]
    assert run(launcher, PATIENT, **SDK) == 0
    assert launcher.script == []


@pytest.mark.usefixtures("private")
def test_the_controller_is_ended_once_when_all_ranks_have_trained_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the vendor's SDK no rank's process ends before that."""
    controller, launcher = Controller(monkeypatch), Launcher()
    finished_ranks.note(finished_ranks.TRAINED, 3)  # of an attempt before: forgotten
    ended: list[int] = []

    def train(*ranks: int) -> Callable[[], None]:
        def do() -> None:
            ended.append(controller.told.count(("destroy", ())))
            for rank in ranks:
                finished_ranks.note(finished_ranks.TRAINED, rank)

        return do

    launcher.script = [train(0, 1, 2), train(3), train(), launcher.end()]
    assert run(launcher, **SDK) == 0
    assert ended == [0, 0, 1]
    assert controller.told.count(("destroy", ())) == 1


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_agent_ends_no_job_that_the_controller_is_still_deciding_about(name: str) -> None:
    sdk = OF_THE_SDK[name]
    noticed = sdk.lost_after + 2 * sdk.check_interval
    assert PROFILES[name].answer > noticed + sdk.collection + 3 * sdk.pre_lock
