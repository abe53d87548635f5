"""What the cluster orders, the environment wants, or a second controller brings: recorded of the vendor's SDK."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.rehearsal.ttp.agent_dialogue import ACTIONS, CHANGE, DUMP, STOP, WHO, AgentDialogue
from chaos.rehearsal.ttp.controller import Controller
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.processor import Handler, Processor
from chaos.rehearsal.ttp.timings import PROFILES

pytestmark = pytest.mark.processes

SECONDS = 60.0
FAST = dataclasses.replace(PROFILES["fast"], action=SECONDS)


class Job:
    """Two ranks that hold the same state, a controller outside of them, and an agent that chooses ``strategy``."""

    def __init__(self, *, agent: bool = True, strategy: str = "dump", action: float = SECONDS) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._port = int(server.getsockname()[1])
        self.calls: list[tuple[Any, ...]] = []
        self.heard: list[tuple[Any, ...]] = []
        self.saved = threading.Event()
        self.saved.set()
        self.dialogue = AgentDialogue()
        self._strategy = strategy
        for action_name in ACTIONS if agent else ():
            self.dialogue.register(action_name, lambda *arguments, name=action_name: self._hear(name, *arguments))
        timings = dataclasses.replace(FAST, action=action)
        log = TtpLog(None)
        self.controller = Controller(
            -1, 2, run="run-1", secret=b"secret", timings=timings, log=log, agent=self.dialogue
        )
        self.controller.start("127.0.0.1", self._port)
        self.ranks: list[Processor] = []

    def start(self, *, steps: int = 4, cleans: bool = False) -> Job:
        for rank in range(2):
            processor = Processor(
                rank,
                run="run-1",
                secret=b"secret",
                timings=FAST,
                log=TtpLog(None),
                handlers=self._handlers(rank),
                cleans_before_dump=lambda: cleans,
            )
            processor.start("127.0.0.1", self._port)
            self.ranks.append(processor)
        for processor in self.ranks if steps else []:
            processor.report_replicas([0, 1])
            processor.set_step_arguments("arguments")
            processor.begin_update()
            processor.end_update(steps)
        return self

    def _handlers(self, rank: int) -> dict[str, Handler]:
        def saving(step: int, info: Any, arguments: Any, context: Any) -> None:
            self.calls.append(("save", rank, step))
            self.saved.wait(SECONDS)
            self.calls.append(("saved", rank))

        def stopping(arguments: Any, context: Any) -> None:
            self.calls.append(("stop", rank))
            threading.Thread(target=self.ranks[rank].report_error, args=(0,), daemon=True).start()

        return {
            "save_ckpt": (saving, None),
            "stop": (stopping, None),
            "clean": (lambda uce, arguments, context: self.calls.append(("clean", rank)), None),
            "rename": (lambda step, context: self.calls.append(("rename", rank, step)), None),
            "exit": (lambda context: self.calls.append(("exit", rank)), None),
        }

    def _hear(self, name: str, *arguments: Any) -> int:
        self.heard.append((name, *arguments))
        answers = {
            "report_fault_ranks": (STOP, {}),
            "report_stop_complete": (WHO, {}),
            "report_strategies": (CHANGE, self._strategy),
        }
        if name in answers:
            self.dialogue.notify(*answers[name])
        return 0

    def count(self, name: str) -> int:
        return sum(call[0] == name for call in self.calls)

    def wait_for_exits(self, count: int = 2) -> None:
        wait_for("exits", lambda: self.count("exit") == count, seconds=SECONDS)

    def end(self) -> None:
        self.saved.set()
        for processor in self.ranks:
            processor.leave()
        self.controller.close()


Start = Callable[..., Job]


@pytest.fixture
def job() -> Iterator[Start]:
    jobs: list[Job] = []

    def make(**settings: Any) -> Job:
        jobs.append(Job(**settings))
        return jobs[-1]

    yield make
    for one in jobs:
        one.end()


@pytest.mark.parametrize("agent", [True, False])
def test_an_order_to_dump_is_obeyed_though_nobody_asked_and_nothing_failed(job: Start, agent: bool) -> None:
    one = job(agent=agent).start()
    assert one.dialogue.notify(DUMP, None) == 0
    one.wait_for_exits()
    assert [call for call in one.calls if call[0] != "exit"] == [("save", 0, 4), ("saved", 0), ("rename", 0, 4)]
    assert one.heard == ([("report_result", 0, "do dump success", {}, "dump")] if agent else [])


def test_an_order_to_dump_before_the_first_step_only_ends_the_job(job: Start) -> None:
    one = job().start(steps=0)
    assert one.dialogue.notify(DUMP, None) == 0
    one.wait_for_exits()
    assert one.count("save") == 0
    assert [call[:2] for call in one.heard] == [("report_result", 499)]


@pytest.mark.parametrize("ranks", [{}, {1: 1}])
def test_an_order_to_stop_is_obeyed_though_nobody_asked(job: Start, ranks: dict[int, int]) -> None:
    one = job().start()
    assert one.dialogue.notify(STOP, ranks) == 0
    one.wait_for_exits()
    assert ("save", 0, 4) in one.calls
    assert [call[0] for call in one.heard] == [*ACTIONS[:3], "report_result"]
    assert one.heard[0][1] == one.heard[2][1] == ranks
    assert one.heard[2][2] == ["exit", "dump"]


def test_a_strategy_that_nobody_asked_for_changes_nothing(job: Start) -> None:
    one = job().start()
    assert one.dialogue.notify(CHANGE, "dump") == 0
    one.ranks[0].begin_update()
    one.ranks[0].end_update(5)
    threading.Event().wait(5 * FAST.check_interval)
    assert one.calls == [] and one.heard == []


def test_a_rank_that_saves_is_not_told_to_exit_before_it_has_saved(job: Start) -> None:
    """The controller's patience ends first, so nothing is renamed; a rank that saves nothing exits at once."""
    one = job(action=1.0)
    one.saved.clear()
    one.start()
    one.dialogue.notify(DUMP, None)
    # Which of the two comes first is for the machine to say: the controller waits a second only.
    wait_for("both", lambda: sorted(one.calls) == [("exit", 1), ("save", 0, 4)], seconds=SECONDS)
    assert one.heard == [("report_result", 499, "save ckpt failed", {}, "dump")]
    one.saved.set()
    one.wait_for_exits()
    assert one.calls[2:] == [("saved", 0), ("exit", 0)]


def test_an_exit_that_comes_right_behind_the_order_to_save_waits_for_the_save(job: Start) -> None:
    one = job()
    one.saved.clear()
    rank = one.start().ranks[0]
    rank._obey({"message": "dump", "step": 4})
    thread = threading.Thread(target=rank._obey, args=({"message": "exit"},), daemon=True)
    thread.start()
    wait_for("the save", lambda: one.calls == [("save", 0, 4)], seconds=SECONDS)
    assert thread.is_alive()
    one.saved.set()
    thread.join(SECONDS)
    assert one.calls == [("save", 0, 4), ("saved", 0), ("exit", 0)]


def test_the_environment_may_want_a_device_cleaned_before_a_save(job: Start) -> None:
    one = job().start(cleans=True)
    one.dialogue.notify(DUMP, None)
    one.wait_for_exits()
    own = [call for call in one.calls if call[1] == 0]
    assert [call[0] for call in own] == ["stop", "clean", "save", "saved", "rename", "exit"]
    assert one.ranks[0].repair_type == "dump"
    assert [call[0] for call in one.calls if call[1] == 1] == ["exit"]
