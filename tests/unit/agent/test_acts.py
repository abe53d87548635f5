"""What a rank does to itself: the kernel says how it ended, and its own record says that it was about to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.acts import Slowness, perform
from chaos.agent.record import Record
from chaos.history.event import Event
from chaos.history.reader import read_history
from tests.unit.agent.conftest import TREE, Events

WHERE = {"fault": "it", "step": 5, "phase": "forward"}
_RANK = """
from chaos.agent.acts import perform
from chaos.agent.record import Record
record = Record({directory!r}, run="run-1", attempt="train", rank=3)
perform({order!r}, record, **{where!r})
"""


def ended(python: str, history: Path, order: dict[str, Any]) -> tuple[int, list[Event]]:
    """How a process ends that performs ``order``, and what it has recorded of it."""
    text = _RANK.format(directory=str(history), order=order, where=WHERE)
    done = subprocess.run([python, "-c", text], cwd=TREE.parent, capture_output=True, timeout=60)
    return done.returncode, read_history(history).select("fault.acting")


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"act": "segfault"}, -signal.SIGSEGV),
        ({"act": "abort"}, -signal.SIGABRT),
        ({"act": "exit", "code": 7}, 7),
        ({"act": "exit", "code": 0}, 0),
    ],
)
def test_a_rank_ends_itself_and_has_said_so(python: str, history: Path, order: dict[str, Any], code: int) -> None:
    returned, (act,) = ended(python, history, order)
    assert returned == code
    assert {key: act.data[key] for key in ("act", *WHERE)} == {"act": order["act"], **WHERE}
    assert list(TREE.parent.glob("core*")) == []


def test_a_rank_that_exits_by_a_fault_says_so_in_its_own_log(python: str, history: Path) -> None:
    text = _RANK.format(directory=str(history), order={"act": "exit", "code": 7}, where=WHERE)
    done = subprocess.run([python, "-c", text], cwd=TREE.parent, capture_output=True, text=True, timeout=60)
    assert done.stderr == "chaos: fault it ends this process with code 7, by os._exit\n"


_SKEWED = (
    _RANK
    + """
import logging, time
one = logging.LogRecord("a", 20, "b", 1, "c", (), None)
record.write("told", created=one.created, by_time=time.time(), by_ns=time.time_ns() / 1e9)
"""
)


@pytest.mark.parametrize("offset", [3600, -3600.5])
def test_a_clock_is_wrong_for_what_a_rank_stamps_and_right_in_its_history(
    python: str, history: Path, offset: float
) -> None:
    text = _SKEWED.format(directory=str(history), order={"act": "clock-skew", "offset": offset}, where=WHERE)
    before = time.time()
    subprocess.run([python, "-c", text], cwd=TREE.parent, check=True, timeout=60)
    after = time.time()
    (act,) = read_history(history).select("fault.acting")
    assert (act.data["act"], act.data["seen"]) == ("clock-skew", pytest.approx(offset, abs=0.5))
    (event,) = read_history(history).select("told")
    for stamp in ("created", "by_time", "by_ns"):
        assert before + offset <= event.data[stamp] <= after + offset, stamp
    assert before * 1e9 <= act.wall <= event.wall <= after * 1e9


@pytest.mark.parametrize("name", ["RuntimeError", "OSError"])
def test_an_exception_is_recorded_and_raised(record: Record, events: Events, name: str) -> None:
    with pytest.raises((RuntimeError, OSError), match="some text") as raised:
        perform({"act": "exception", "type": name, "text": "some text"}, record, **WHERE)
    assert raised.type.__name__ == name
    (event,) = events("fault.raised")
    assert (event.data["text"], event.data["type"], event.data["phase"]) == ("some text", name, "forward")


@pytest.mark.parametrize("act", ["hang", "data-stall", "hold-gil"])
def test_a_rank_that_waits_says_when_it_goes_on(record: Record, events: Events, act: str) -> None:
    perform({"act": act, "seconds": 0.2}, record, **WHERE)
    (began,), (over,) = events("fault.acting"), events("fault.ended")
    assert (began.data["act"], over.data["act"]) == (act, act)
    assert over.mono - began.mono >= 0.2e9


def test_nothing_of_python_runs_while_the_lock_is_held(record: Record, events: Events) -> None:
    before = sys.getswitchinterval()
    perform({"act": "hold-gil", "seconds": 0.4}, record, **WHERE)
    (began,) = events("fault.acting")
    ticks = events("fault.witness")
    assert len([event for event in ticks if event.mono < began.mono]) >= 3
    assert [event for event in ticks if began.mono < event.mono < began.mono + 0.4e9] == []
    assert sys.getswitchinterval() == before


def test_a_thread_that_waits_leaves_the_others_running(record: Record, events: Events) -> None:
    """What tells the two apart: beside a hang another thread writes on."""
    import threading

    done = threading.Event()

    def write() -> None:
        while not done.wait(0.02):
            record.write("another.thread")

    other = threading.Thread(target=write)
    other.start()
    perform({"act": "hang", "seconds": 0.4}, record, **WHERE)
    done.set()
    other.join()
    (began,), (over,) = events("fault.acting"), events("fault.ended")
    assert [event for event in events("another.thread") if began.mono < event.mono < over.mono]


def test_a_slow_rank_waits_in_proportion_and_for_as_many_steps(record: Record, events: Events) -> None:
    slow = Slowness({"factor": 3, "steps": 2}, record, **WHERE)
    assert [slow.drag(step, 0.01) for step in (5, 6)] == [False, True]
    waited = [(event.data["step"], event.data["own"], event.data["waited"] >= 0.02) for event in events("fault.slowed")]
    assert waited == [(5, 0.01, True), (6, 0.01, True)]
