"""The stand-in for MindIO TFT on jobs of plain Python ranks: who saves, renames and exits, and when nobody does."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timezone
from itertools import pairwise
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.observe.logs.ttp.log import TtpLogReader
from chaos.rehearsal.ttp.wire import Link
from tests.unit.rehearsal.conftest import SECONDS, Ranks, Start, running

pytestmark = pytest.mark.processes

SAMPLE = Path(__file__).parents[2] / "observe" / "data" / "samples" / "kill-ttp_log.log.30677"
"""Excerpt of a log of the vendor's controller: four ranks, groups [0, 2] and [1, 3], rank 2 killed."""


NOT_BY_SILENCE = {"lost_after": 600.0}
"""Timings with which no silence tells of a fault before the job's own limit has ended it."""


def is_subsequence(short: list[str], long: list[str]) -> bool:
    rest = iter(long)
    return all(one in rest for one in short)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """A job whose rank 2 was killed at the end of step 5, after its end."""
    directory = tmp_path_factory.mktemp("killed")
    with running(directory) as start:
        job = start(acts=[(2, 5, "end", "SIGKILL")], timings=NOT_BY_SILENCE)
        job.codes()
        yield job


def test_after_a_kill_one_rank_of_each_group_saves_one_renames_and_all_exit(killed: Ranks) -> None:
    job = killed
    assert job.codes() == [1, 1, -9, 1]
    assert job.left("saved-*/*") == ["saved-5/rank_0", "saved-5/rank_1"]
    assert (job.directory / "done-5").read_text() == "1\n"
    assert job.left("exited-*") == ["exited-0", "exited-1", "exited-3"]
    assert job.left("left-*") == []
    info = json.loads((job.directory / "saved-5" / "rank_0").read_text())
    assert info == [{"type": 0, "ranks": [0]}]


def test_the_log_tells_the_same_story_as_the_vendors(killed: Ranks) -> None:
    job = killed
    reader = TtpLogReader(timezone.utc)
    vendor = [event for line in SAMPLE.read_text().splitlines() if (event := reader.read(line))]
    ours = job.log(0)
    assert job.states() == [event.fields["state"] for event in vendor if event.kind == "ttp.state"]
    assert job.states()[:4] == ["NORMAL", "ABNORMAL", "DUMP", "EXIT"]
    times = [event.wall_ns or 0 for event in ours]
    assert all(one - 1e7 <= two for one, two in pairwise(times))
    # What rank 0 itself does as the receiver of messages is in another thread: its order among the controller's lines
    # is not fixed, in the vendor's log neither.
    begun = [event.kind for event in ours].index("ttp.status_error")
    controller = [event.kind for event in ours[begun:] if event.fields["thread"] == ours[begun].fields["thread"]]
    assert is_subsequence(controller, [event.kind for event in vendor])
    assert len(controller) >= 9
    kinds = {event.kind for event in job.log(0) + job.log(1) + job.log(2)}
    assert {"ttp.registered", "ttp.dump_config", "ttp.dump_begin", "ttp.dump_result", "ttp.processor_start"} <= kinds
    selected = [event for event in ours if event.kind == "ttp.errors_selected"]
    assert [(one.fields["ranks"], one.step) for one in selected] == [([2], None), ([2], 5)]
    groups = [event.fields["group"] for event in ours if event.kind == "ttp.registered"]
    assert sorted(groups) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("when", ["begin", "update"])
def test_the_step_that_is_saved_is_the_last_that_the_survivors_trained(ranks: Start, when: str) -> None:
    """A rank that is lost before its part of the sum leaves the others in it; later they finish the step."""
    job = ranks(acts=[(3, 4, when, "SIGKILL")])
    assert job.codes(0, 1, 2) == [1, 1, 1]
    assert job.left("done-*") == [f"done-{3 if when == 'begin' else 4}"]


def test_a_stopped_rank_is_lost_when_it_has_been_silent_for_five_seconds(ranks: Start) -> None:
    job = ranks(acts=[(2, 5, "end", "SIGSTOP")])
    assert job.codes(0, 1, 3) == [1, 1, 1]
    assert job.left("saved-*/*") == ["saved-5/rank_0", "saved-5/rank_1"]
    errors = [event for event in job.log(0) if event.kind == "ttp.status_error"]
    assert {event.rank for event in errors} == {2}
    assert all(event.fields["diff_ms"] >= 5000 for event in errors)
    assert job.processes[2].poll() is None


def test_without_a_complete_copy_nothing_is_saved_and_all_exit(ranks: Start) -> None:
    job = ranks(groups=[[0, 1], [2, 3]], acts=[(2, 5, "end", "SIGKILL"), (3, 5, "end", "SIGKILL")])
    assert job.codes() == [1, 1, -9, -9]
    assert job.left("saved-*") == job.left("done-*") == []
    assert job.left("exited-*") == ["exited-0", "exited-1"]
    (refused,) = [event for event in job.log(0) if event.kind == "ttp.dump_refused"]
    assert refused.fields["dp"] == [2, 3]


def test_before_the_first_step_nothing_is_saved_and_all_exit(ranks: Start) -> None:
    job = ranks(acts=[(2, 1, "begin", "SIGKILL")])
    assert job.codes() == [1, 1, -9, 1]
    assert job.left("saved-*") == []
    assert "DUMP" not in job.states()


def test_before_every_group_is_known_nothing_is_saved(ranks: Start) -> None:
    job = ranks(groups=[], acts=[(2, 3, "end", "SIGKILL")])
    assert job.codes() == [1, 1, -9, 1]
    assert job.left("saved-*") == []


@pytest.mark.parametrize("failing", [[1], [0, 1]])
def test_when_one_save_fails_nothing_is_renamed_and_all_exit(ranks: Start, failing: list[int]) -> None:
    job = ranks(acts=[(2, 5, "end", "SIGKILL")], saving_fails=failing)
    assert job.codes() == [1, 1, -9, 1]
    assert job.left("done-*") == []
    results = [e.fields["ret"] for rank in failing for e in job.log(rank) if e.kind == "ttp.dump_result"]
    assert results == [1] * len(failing)


def test_a_rank_that_reports_an_unknown_error_is_not_asked_to_save(ranks: Start) -> None:
    job = ranks(acts=[(0, 5, "end", "error")], timings=NOT_BY_SILENCE)
    assert job.codes() == [1, 1, 1, 1]
    assert job.left("saved-*/*") == ["saved-5/rank_1", "saved-5/rank_2"]
    assert job.left("done-*") == ["done-5"]


def test_two_deaths_one_after_the_other_still_leave_a_checkpoint(ranks: Start) -> None:
    job = ranks(groups=[[0, 1, 2, 3]], acts=[(2, 5, "end", "SIGKILL"), (3, 6, "begin", "SIGKILL")])
    assert job.codes() == [1, 1, -9, -9]
    assert job.left("saved-*/*") == ["saved-5/rank_0"]
    assert job.left("done-*") == ["done-5"]


def test_when_the_controller_dies_the_others_exit_by_themselves(ranks: Start) -> None:
    job = ranks(acts=[(0, 5, "end", "SIGKILL")])
    assert job.codes() == [-9, 1, 1, 1]
    assert job.left("saved-*") == []
    assert job.left("exited-*") == ["exited-1", "exited-2", "exited-3"]
    said = job.output()
    for rank in (1, 2, 3):
        left = f"mindio_ttp: rank {rank} exits: it has lost the controller, and rank {rank}: "
        assert said.count(left) == 1


def test_with_a_controller_outside_the_ranks_any_rank_may_die(ranks: Start) -> None:
    job = ranks(controller=-1, acts=[(0, 5, "end", "SIGKILL")])
    outside = job.start(
        sys.executable, "-m", "chaos.rehearsal.ttp.outside", "4", "127.0.0.1", str(job.port), "/bin/true"
    )
    assert outside.wait(SECONDS) == 0
    assert job.codes() == [-9, 1, 1, 1]
    assert job.left("saved-*/*") == ["saved-5/rank_1", "saved-5/rank_2"]
    assert job.left("done-*") == ["done-5"]
    ranks_logs = {f"ttp_log.log.{process.pid}" for process in job.processes}
    (log,) = (path for path in (job.directory / "ttp").iterdir() if path.name not in ranks_logs)
    # It ends by itself when nothing is left to watch.
    controller = Path("/proc", log.suffix[1:], "cmdline")
    wait_for("end of the controller", lambda: not controller.exists() or not controller.read_bytes(), seconds=SECONDS)
    assert "the controller outside the ranks ends: 3 of 4 ranks were told to exit" in job.output()
    for rank in (1, 2, 3):
        assert job.output().count(f"mindio_ttp, rank {rank} exits: the controller has ordered it\n") == 1


# What is no fault.


def test_training_to_the_end_is_no_fault(ranks: Start) -> None:
    job = ranks()
    assert job.codes() == [0, 0, 0, 0]
    assert job.states() == ["NORMAL"]
    assert job.left("left-*") == ["left-0", "left-1", "left-2", "left-3"]


def test_a_rank_that_ends_its_training_normally_is_no_fault_while_the_others_go_on(ranks: Start) -> None:
    job = ranks(alone=True, steps=60, acts=[(3, 5, "end", "leave")])
    assert job.codes() == [0, 0, 0, 0]
    assert job.states() == ["NORMAL"]
    assert job.left("exited-*") == []


def test_the_controllers_rank_may_be_the_first_to_finish(ranks: Start) -> None:
    """The others would otherwise look for it for a second, and exit in the middle of their last step."""
    job = ranks(alone=True, steps=160, acts=[(0, 5, "end", "leave")])
    assert job.codes() == [0, 0, 0, 0]
    assert job.left("left-*") == ["left-0", "left-1", "left-2", "left-3"]
    assert job.left("exited-*") == []


def test_a_rank_that_holds_its_interpreter_for_seconds_is_not_lost(ranks: Start) -> None:
    job = ranks(busy_seconds=2.0, acts=[(1, 3, "end", "busy")])
    assert job.codes() == [0, 0, 0, 0]
    assert job.states() == ["NORMAL"]


@pytest.fixture
def busy() -> Iterator[Callable[[], None]]:
    """Keep both cores busy, and more."""
    workers: list[subprocess.Popen[bytes]] = []

    def busy() -> None:
        workers.extend(subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4))

    yield busy
    for worker in workers:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("seconds", [3, pytest.param(30, marks=pytest.mark.nightly)])
def test_nothing_is_detected_under_load(ranks: Start, busy: Callable[[], None], seconds: int) -> None:
    busy()
    job = ranks(steps=seconds * 10, step_seconds=0.1, limit=seconds * 10)
    assert job.codes() == [0, 0, 0, 0]
    assert job.states() == ["NORMAL"]


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(10))
def test_under_load_a_death_is_found_and_saved_all_the_same(
    ranks: Start, busy: Callable[[], None], number: int
) -> None:
    busy()
    job = ranks(acts=[(2, 5, "end", "SIGKILL")], timings=NOT_BY_SILENCE)
    assert job.codes() == [1, 1, -9, 1]
    assert job.left("saved-*/*") == ["saved-5/rank_0", "saved-5/rank_1"]
    assert job.left("done-*") == ["done-5"]


# Strangers.


def garbage() -> list[bytes]:
    def framed(body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + body

    register = {"message": "register", "rank": 2, "run": "run-1"}
    return [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        framed(b"not json"),
        framed(b"[1]"),
        framed(b"[" * 100_000),
        framed(json.dumps({"message": "heartbeat"}).encode()),
        framed(json.dumps({**register}).encode()),
        framed(json.dumps({**register, "nonce": "0" * 64, "run": "run-2"}).encode()),
        framed(json.dumps({**register, "nonce": 3}).encode()),
        framed(json.dumps({**register, "rank": "2", "nonce": None}).encode()),
    ]


def test_who_does_not_show_the_secret_is_ignored(ranks: Start) -> None:
    job = ranks(steps=80)

    def listening() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", job.port), 1)
        except OSError:
            return None

    strangers = [wait_for("the controller", listening, seconds=SECONDS)]
    for data in garbage():
        unproven = socket.create_connection(("127.0.0.1", job.port), SECONDS)
        unproven.sendall(data)
        if data:
            with contextlib.suppress(OSError):  # it may be closed on the other side already
                unproven.shutdown(socket.SHUT_WR)
            assert Link(unproven).receive() is None
        strangers.append(unproven)
    assert job.codes() == [0, 0, 0, 0]
    assert job.states() == ["NORMAL"]
    text = (job.directory / "ttp" / f"ttp_log.log.{job.processes[0].pid}").read_text()
    assert text.count("a registration was ignored: it ") >= len(garbage()) - 1
    assert "Traceback" not in job.output()
    for unproven in strangers:
        unproven.close()


def test_a_rank_that_finds_somebody_else_at_the_port_says_so(ranks: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        job = ranks(ranks=1, controller=-1, port=server.getsockname()[1])
        connection, _ = server.accept()
        connection.close()
        assert job.codes() == [1]
    assert f"127.0.0.1:{job.job['port']} is not the controller of this run" in job.output()


CONTROLLER = """
import sys
from mindio_ttp import framework_ttp as tft
tft.tft_init_controller(0, 4, False)
tft.tft_start_controller(sys.argv[1], int(sys.argv[2]), False, "")
print("started")
"""


@pytest.mark.parametrize(
    ("address", "port", "words"),
    [
        ("127.0.0.1", None, "Address already in use"),
        ("0.0.0.0", 25000, "listens on the loopback only, not on 0.0.0.0"),
        ("127.0.0.1", 80, "port 80 is not one of 1024 to 65535"),
        ("127.0.0.1", 70000, "port 70000 is not one of 1024 to 65535"),
    ],
)
def test_a_controller_that_cannot_listen_ends_its_process_with_2(
    ranks: Start, address: str, port: int | None, words: str
) -> None:
    job = ranks(ranks=0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1] if port is None else port
        process = job.start(sys.executable, "-c", CONTROLLER, address, str(number))
        job.processes.append(process)
        assert job.codes() == [2]
    assert f"mindio_ttp: the controller cannot listen on {address}:{number}: " in job.output()
    assert words in job.output()


def test_a_closed_controller_frees_its_port_at_once(ranks: Start) -> None:
    job = ranks(steps=3, after_seconds={"0": 600.0}, limit=600.0)
    wait_for("the end of training", lambda: job.left("left-0"), seconds=SECONDS)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", job.port))
        listener.listen()
    assert job.processes[0].poll() is None
