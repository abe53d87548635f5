"""At a deadline every rank that has offered its stacks writes them, whatever it does, and nothing else is signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from chaos.agent.stacks import SIGNAL, file_name
from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.linux.process import ProcessIdentity, identify, send_signal, state
from chaos.machine.linux.procfs import read_stat
from chaos.run.launch.stacks import Stacks

pytestmark = pytest.mark.processes

OFFER = """
import json, os, sys, threading, time
from chaos.agent.stacks import offer_stacks
offer = offer_stacks(sys.argv[1], int(sys.argv[2]))
print(json.dumps(offer.fields), flush=True)
"""
WAYS = {
    "waits": "def in_wait():\n    print('there', flush=True)\n    threading.Event().wait()\nin_wait()",
    "computes": """
def in_loop():
    while True: pass
def say():
    looping = in_loop.__code__.co_firstlineno + 1
    while sys._current_frames()[threading.main_thread().ident].f_lineno != looping: time.sleep(0.01)
    print('there', flush=True)
threading.Thread(target=say).start()
in_loop()
""",  # another thread says it: the loop's own words would be another line of the stack
    "holds": (
        "import ctypes\n"
        "def in_call():\n"
        "    print('there', flush=True)\n"
        "    while True: ctypes.PyDLL(None).pause()\n"  # a PyDLL keeps the interpreter lock
        "in_call()"
    ),
    "silent": "print('there', flush=True)\ntime.sleep(600)",
}


class Ranks:
    """Processes that are ranks, as a job: signals go to no other process."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.identities: dict[int, ProcessIdentity] = {}
        self.sent: list[tuple[int, int]] = []
        self.stacks = Stacks(logs, SYSTEM_CLOCK)

    def start(self, rank: int, way: str, *, offers: bool = True) -> None:
        import json

        program = (OFFER if offers else "import time, threading\nprint('{}', flush=True)\n") + WAYS[way]
        arguments = [sys.executable, "-c", program, str(self.logs), str(rank)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.processes[rank], self.identities[rank] = process, identify(process.pid)
        assert process.stdout is not None
        offer = json.loads(process.stdout.readline())
        assert process.stdout.readline() == "there\n"
        if offers:
            self.stacks.note({"event": "agent.start", "rank": rank, "pid": process.pid, **offer})

    def state(self, identity: ProcessIdentity) -> str:
        return state(identity)

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        self.sent.append((identity.pid, signum))
        send_signal(identity, signum)

    def take(self, exited: Collection[int] = (), steps: Mapping[int, int] = MappingProxyType({})) -> dict[str, Any]:
        taken = self.stacks.take(self, self.identities, exited, steps)  # type: ignore[arg-type]
        assert taken is not None
        return taken


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    started = Ranks(tmp_path)
    yield started
    for process in started.processes.values():
        process.kill()
        process.wait()


def is_asleep(pid: int) -> Callable[[], bool]:
    def asleep() -> bool:
        found = read_stat(pid)
        return found is not None and found.state == "S"

    return asleep


def last_calls(taken: dict[str, Any]) -> dict[int, list[str]]:
    return {rank: [frame[2] for frame in entry["frames"]] for entry in taken["stacks"] for rank in entry["ranks"]}


def test_a_rank_answers_that_waits_computes_or_holds_the_interpreter(ranks: Ranks) -> None:
    for rank, way in enumerate(("waits", "computes", "holds")):
        ranks.start(rank, way)
    wait_for("the pause", is_asleep(ranks.identities[2].pid), seconds=60)
    calls = last_calls(ranks.take())
    where = {rank: next(name for name in names if name.startswith("in_")) for rank, names in calls.items()}
    assert where == {0: "in_wait", 1: "in_loop", 2: "in_call"}
    assert all(process.poll() is None for process in ranks.processes.values()), "they live on"


def test_ranks_with_the_same_stack_are_one_entry_behind_the_rank_that_differs(ranks: Ranks) -> None:
    for rank, way in enumerate(("computes", "waits", "computes")):
        ranks.start(rank, way)
    assert [entry["ranks"] for entry in ranks.take()["stacks"]] == [[1], [0, 2]]


def test_of_two_stacks_that_of_the_rank_behind_comes_first(ranks: Ranks) -> None:
    for rank, way in enumerate(("waits", "computes")):
        ranks.start(rank, way)
    assert [(entry["ranks"], entry["step"]) for entry in ranks.take(steps={0: 7, 1: 6})["stacks"]] == [
        ([1], 6),
        ([0], 7),
    ]


def test_a_rank_that_offers_nothing_is_never_signalled(ranks: Ranks) -> None:
    ranks.start(0, "waits")
    ranks.start(1, "silent", offers=False)
    taken = ranks.take()
    assert ranks.sent == [(ranks.identities[0].pid, SIGNAL)]
    assert taken["without"] == [{"ranks": [1], "why": "its agent offers no stacks"}]
    assert ranks.processes[1].poll() is None


def test_a_process_that_does_not_catch_the_signal_is_not_signalled_whatever_was_recorded(ranks: Ranks) -> None:
    ranks.start(0, "silent", offers=False)
    pid = ranks.identities[0].pid
    ranks.stacks.note({"event": "agent.start", "rank": 0, "pid": pid, "stacks": {"signal": SIGNAL, "main": 1}})
    assert ranks.take()["without"] == [{"ranks": [0], "why": "its process does not catch the signal"}]
    assert ranks.sent == []


@pytest.mark.parametrize("signum", [int(signal.SIGTERM), int(signal.SIGKILL)])
def test_a_recorded_offer_of_another_signal_is_ignored(ranks: Ranks, signum: int) -> None:
    ranks.start(0, "silent", offers=False)
    pid = ranks.identities[0].pid
    ranks.stacks.note({"event": "agent.start", "rank": 0, "pid": pid, "stacks": {"signal": signum, "main": 1}})
    assert ranks.take()["without"] == [{"ranks": [0], "why": "its agent offers no stacks"}]
    assert ranks.processes[0].poll() is None


def test_a_stopped_rank_is_left_alone_and_named(ranks: Ranks) -> None:
    ranks.start(0, "waits")
    os.kill(ranks.identities[0].pid, signal.SIGSTOP)
    wait_for("the stop", lambda: state(ranks.identities[0]) == "stopped", seconds=60)
    assert ranks.take()["without"] == [{"ranks": [0], "why": "its process is stopped"}]
    assert ranks.sent == []


def test_where_every_rank_has_exited_there_is_nothing_to_take(ranks: Ranks) -> None:
    assert ranks.stacks.take(ranks, {}, {0, 1}, {}) is None  # type: ignore[arg-type]


def test_files_of_ranks_that_were_not_asked_are_removed(ranks: Ranks) -> None:
    ranks.start(0, "waits")
    ranks.start(1, "waits")
    ranks.take(exited={1})
    ranks.stacks.remove_empty_files()
    assert [path.name for path in ranks.logs.iterdir()] == [file_name(0, ranks.identities[0].pid)]


def test_a_rank_that_ends_well_leaves_no_file(tmp_path: Path) -> None:
    there = "assert os.listdir(sys.argv[1])"
    program = f"{OFFER}\n{there}\nif os.fork() == 0: sys.exit(0)\nos.wait()\n{there}"
    subprocess.run([sys.executable, "-c", program, str(tmp_path), "0"], check=True, stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_already_has_a_meaning_is_not_taken(tmp_path: Path) -> None:
    program = f"import signal\nsignal.signal({SIGNAL}, lambda *_: None)\n{OFFER}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), "0"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == '{"stacks": null}\n'
    assert list(tmp_path.iterdir()) == []
