"""The parts of the SDK stand-in by themselves: who counts as lost, who saves, what a message may be, who may speak."""

from __future__ import annotations

import importlib
import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.base.wait import wait_for
from chaos.rehearsal.ttp.controller import Controller
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.processor import Handler, Processor
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.timings import PROFILES
from chaos.rehearsal.ttp.wire import Link
from tests.unit.rehearsal.conftest import SDK

pytestmark = pytest.mark.processes

SECONDS = 60.0
FAST = PROFILES["fast"]


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def link() -> Iterator[Link]:
    end, other = socket.socketpair()
    yield Link(end)
    end.close()
    other.close()


# Who is lost.


def test_a_rank_whose_heartbeats_are_late_is_not_lost_before_five_seconds(link: Link) -> None:
    now = Now()
    roster = Roster(FAST, now)
    member = roster.add(2, link)
    now.seconds += 4.99
    assert not roster.lost(member)
    roster.hear(member, {"message": "heartbeat", "step": 3})
    assert roster.silent_ms(member) == 0
    now.seconds += 4.99
    assert not roster.lost(member)
    now.seconds += 0.02
    assert roster.lost(member)
    assert roster.silent_ms(member) >= 5000


def test_a_broken_connection_is_believed_soon_by_the_fast_profile_and_never_by_the_vendors(link: Link) -> None:
    for name, lost in (("fast", True), ("vendor", False)):
        now = Now()
        roster = Roster(PROFILES[name], now)
        member = roster.add(2, link)
        roster.lose_link(member)
        assert not roster.lost(member)
        now.seconds += 0.16
        assert roster.lost(member) is lost
        roster.lose_link(member)
        assert roster.lost(member) is lost


def test_the_vendors_profile_has_the_vendors_times() -> None:
    vendor = PROFILES["vendor"]
    assert (vendor.heartbeat, vendor.lost_after, vendor.check_interval, vendor.collection) == (2.0, 8.0, 2.0, 5.0)
    assert (vendor.pre_lock, vendor.action, vendor.link_lost_after) == (30.0, 180.0, None)


def test_a_rank_that_has_left_is_not_among_the_members(link: Link) -> None:
    roster = Roster(FAST, Now())
    stays, leaves = roster.add(0, link), roster.add(1, link)
    roster.hear(leaves, {"message": "leave", "step": 9})
    assert roster.members() == [stays]
    assert roster.member(1).step == 9


def test_asking_ends_with_the_last_answer_or_the_limit() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    roster = Roster(FAST)
    members = [roster.add(rank, Link(pair[0])) for rank, pair in enumerate(pairs)]

    def answer(rank: int) -> None:
        asked = Link(pairs[rank][1]).receive()
        assert asked == {"message": "dump", "step": 5}
        roster.hear(members[rank], {"message": "reply", "to": "dump", "step": 5, "result": 0})

    threads = [threading.Thread(target=answer, args=(rank,)) for rank in (0, 2)]
    for thread in threads:
        thread.start()
    assert roster.ask(members, "dump", 0.2, step=5) == [members[1]]
    roster.lose_link(members[1])
    # A dead rank is not waited for, and an answer of before does not count again.
    assert roster.ask([members[1]], "dump", SECONDS, step=5) == [members[1]]
    assert roster.ask([members[0]], "dump", 0.05, step=6) == [members[0]]
    for thread in threads:
        thread.join(SECONDS)
    for one, other in pairs:
        one.close()
        other.close()


# Who saves.


def test_nothing_can_be_saved_before_every_group_is_known() -> None:
    """A rank that died before it could tell its group is known by what the others of the group told."""
    replicas = Replicas(4)
    assert not replicas.complete()
    assert [replicas.report(rank, group) for rank, group in [(1, [1, 3]), (3, [3, 1])]] == [True, False]
    assert not replicas.complete()
    assert replicas.report(0, [0, 2])
    assert replicas.complete()
    assert replicas.groups() == [(0, 2), (1, 3)]


@given(st.integers(1, 6), st.integers(1, 4), st.data())
def test_the_lowest_good_rank_of_each_group_saves(groups: int, copies: int, data: st.DataObject) -> None:
    members = [tuple(range(group, groups * copies, groups)) for group in range(groups)]
    replicas = Replicas(groups * copies)
    for group in members:
        for rank in group:
            replicas.report(rank, group)
    good = data.draw(st.sets(st.integers(0, groups * copies - 1)))
    savers, without = replicas.savers(good)
    assert without == [group for group in members if not good & set(group)]
    assert savers == sorted(min(good & set(group)) for group in members if good & set(group))


def test_the_first_saver_that_is_not_rank_0_renames() -> None:
    replicas = Replicas(6)
    for rank, group in [(0, [0, 3]), (2, [2, 5]), (1, [1, 4])]:
        replicas.report(rank, group)
    assert replicas.renamer([0, 1, 2]) == 2  # as reported, not by number
    assert replicas.renamer([0, 1, 5]) == 5
    alone = Replicas(2)
    alone.report(0, [0, 1])
    assert (alone.renamer([0]), alone.renamer([1])) == (0, 1)


# Messages.


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.lists(st.integers()), max_size=5))
def test_a_message_arrives_as_it_was_sent(message: dict[str, Any]) -> None:
    end, other = socket.socketpair()
    with end, other:
        assert Link(end).send(message)
        assert Link(other).receive() == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0",
        framed(b"{}")[:-1],
        framed(b"not json"),
        framed(b"[1]"),
        framed(b"\xff"),
        framed(b"[" * 500_000),
        struct.pack(">I", 1 << 31),
        struct.pack(">I", (1 << 20) + 1) + b"{}",
    ],
)
def test_what_is_no_message_ends_the_connection(data: bytes) -> None:
    end, other = socket.socketpair()
    with end, other:
        sender = threading.Thread(target=say, args=(end, data))
        sender.start()
        assert Link(other).receive() is None
        other.close()
        sender.join(SECONDS)


def say(to: socket.socket, data: bytes) -> None:
    to.sendall(data)
    to.shutdown(socket.SHUT_WR)


def test_sending_to_who_is_gone_says_so_and_closing_twice_is_allowed() -> None:
    end, other = socket.socketpair()
    other.close()
    link = Link(end)
    assert not link.send({"message": "exit"})
    link.close()
    link.close()
    assert not link.send({"message": "exit"})
    assert link.receive() is None


def test_closing_wakes_who_receives() -> None:
    end, other = socket.socketpair()
    link = Link(end)
    got: list[Any] = []
    receiver = threading.Thread(target=lambda: got.append(link.receive()))
    receiver.start()
    link.close()
    receiver.join(SECONDS)
    assert got == [None]
    other.close()


# Processor and controller in one process.


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number: int = server.getsockname()[1]
        return number


Process = Callable[..., Processor]


@pytest.fixture
def processor() -> Process:
    def make(
        rank: int, handlers: dict[str, Handler] | None = None, seconds: float = SECONDS, answer: float = SECONDS
    ) -> Processor:
        timings = replace(FAST, action=seconds, connect=seconds, reconnect=seconds, pre_lock=answer)
        return Processor(
            rank, run="run-1", secret=b"secret", timings=timings, log=TtpLog(None), handlers=handlers or {}
        )

    return make


@pytest.fixture
def controller(port: int) -> Iterator[Controller]:
    one = Controller(-1, 2, run="run-1", secret=b"secret", timings=FAST, log=TtpLog(None))
    one.start("127.0.0.1", port)
    yield one
    one.close()


def test_nobody_at_the_port_is_an_error_that_names_it(processor: Process, port: int) -> None:
    with pytest.raises(ConnectionError, match=rf"rank 1: no controller at 127\.0\.0\.1:{port} within 1 s: "):
        processor(1, seconds=1.0).start("127.0.0.1", port)


def test_somebody_who_never_answers_is_not_waited_for_longer_than_the_limit(processor: Process) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConnectionError, match=f"rank 1: the controller at 127.0.0.1:{port} took the connection"):
            processor(1, answer=0.3).start("127.0.0.1", port)


def test_a_registered_rank_may_be_silent_longer_than_the_limit_of_registering(
    processor: Process, controller: Controller, port: int
) -> None:
    exits: list[str] = []
    one = processor(0, {"exit": (lambda context: exits.append("exit"), None)})
    one.start("127.0.0.1", port)
    threading.Event().wait(1.5)
    assert exits == []
    one.leave()


def test_a_handler_gets_its_arguments_and_its_context(processor: Process, controller: Controller, port: int) -> None:
    calls: list[tuple[str, tuple[Any, ...]]] = []

    def handler(name: str) -> Handler:
        return (lambda *arguments: calls.append((name, arguments)), f"context of {name}")

    ranks = [processor(rank, {name: handler(name) for name in ("save_ckpt", "rename", "exit")}) for rank in (0, 1)]
    for rank, one in enumerate(ranks):
        one.start("127.0.0.1", port)
        one.report_replicas([rank])
        one.set_step_arguments(f"arguments {rank}")
        one.begin_update()
        one.end_update(4)
    threading.Thread(target=ranks[1].report_error, args=(8,), daemon=True).start()
    # Rank 1 has the only copy of its group and is in error, so nothing can be saved.
    wait_for("exits", lambda: [name for name, _ in calls].count("exit") == 2, seconds=SECONDS)
    assert calls == [("exit", ("context of exit",))] * 2
    for one in ranks:
        one.leave()


Heard = list[tuple[str, int]]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """The messages that controllers hear from ranks, with their steps, in the order of arrival."""
    messages: Heard = []
    hear = Roster.hear

    def listen(self: Roster, member: Member, message: dict[str, Any]) -> None:
        hear(self, member, message)
        messages.append((message["message"], message["step"]))

    monkeypatch.setattr(Roster, "hear", listen)
    return messages


def without_beats(**changes: Any) -> Processor:
    """A rank whose next heartbeat never comes."""
    timings = replace(FAST, heartbeat=3600.0, **changes)
    return Processor(0, run="run-1", secret=b"secret", timings=timings, log=TtpLog(None), handlers={})


@pytest.mark.parametrize("reports", [True, False])
def test_the_fast_profile_reports_each_update_and_the_vendors_leaves_it_to_the_heartbeats(
    controller: Controller, port: int, heard: Heard, reports: bool
) -> None:
    """In the fast profile the last report of a rank that dies is of its last step, whatever the load."""
    assert (FAST.reports_updates, PROFILES["vendor"].reports_updates) == (True, False)
    one = without_beats(reports_updates=reports)
    one.start("127.0.0.1", port)
    for step in (6, 2):  # MindSpore counts the steps anew after a repair
        one.begin_update()
        one.end_update(step)
    one.leave()
    wait_for("the last message", lambda: ("leave", 2) in heard, seconds=SECONDS)
    assert heard == [*([("heartbeat", 6), ("heartbeat", 2)] if reports else []), ("leave", 2)]


def test_no_report_of_a_thread_overtakes_a_newer_one_of_another(
    controller: Controller, port: int, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat that is about to be sent with the step before must not arrive after the step's own report."""
    one = without_beats()
    one.start("127.0.0.1", port)
    sending, free, send = threading.Event(), threading.Event(), Link.send

    def slow(self: Link, message: dict[str, Any]) -> bool:
        if message["message"] == "heartbeat" and not sending.is_set():
            sending.set()
            assert free.wait(SECONDS)
        return send(self, message)

    monkeypatch.setattr(Link, "send", slow)
    older = threading.Thread(target=one.end_update, args=(6,), daemon=True)
    newer = threading.Thread(target=one.end_update, args=(2,), daemon=True)
    older.start()
    assert sending.wait(SECONDS)
    newer.start()
    newer.join(0.1)  # without the order it is through by then
    free.set()
    wait_for("both reports", lambda: len(heard) == 2, seconds=SECONDS)
    assert [step for _, step in heard] == [6, 2]
    one.leave()


def test_who_is_told_to_exit_before_it_has_a_handler_says_so_in_its_own_log(
    processor: Process,
    controller: Controller,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    one = processor(0)
    one.start("127.0.0.1", port)
    threading.Thread(target=one.report_error, args=(8,), daemon=True).start()
    wait_for("its end", lambda: codes, seconds=SECONDS)
    said = "mindio_ttp, rank 0 exits: the controller has ordered it; it has no exit handler yet"
    assert (codes, capfd.readouterr().err.splitlines()[0]) == ([1], said)
    one.leave()


def test_a_new_process_that_comes_after_the_end_is_told_to_exit(
    processor: Process, controller: Controller, port: int
) -> None:
    """Of a rank that was started again, while the job has been ended meanwhile: nobody else would end it."""
    exits: list[str] = []

    def rank(number: int) -> Processor:
        return processor(number, {"exit": (lambda context: exits.append(f"rank {number}"), None)})

    first, late = rank(0), rank(1)
    first.start("127.0.0.1", port)
    first.report_replicas([0])
    threading.Thread(target=first.report_error, args=(8,), daemon=True).start()
    wait_for("the end of the job", lambda: exits == ["rank 0"], seconds=SECONDS)
    late.start("127.0.0.1", port)
    wait_for("the end of the late one", lambda: exits == ["rank 0", "rank 1"], seconds=SECONDS)
    for one in (first, late):
        one.leave()


def test_an_update_that_the_controller_has_locked_waits(processor: Process, controller: Controller, port: int) -> None:
    calls: list[Any] = []
    handlers: dict[str, Handler] = {
        "save_ckpt": (lambda step, info, arguments, context: calls.append(("save", step, info, arguments)), None),
        "rename": (lambda step, context: calls.append(("rename", step)), None),
        "exit": (lambda context: calls.append("exit"), None),
    }
    good, bad = processor(0, handlers), processor(1, {"exit": (lambda context: None, None)})
    for one in (good, bad):
        one.start("127.0.0.1", port)
        one.report_replicas([0, 1])
        one.begin_update()
        one.end_update(4)
    good.begin_copy()  # no update: nobody waits for its end
    good.set_step_arguments("arguments")
    threading.Thread(target=bad.report_error, args=(8,), daemon=True).start()
    wait_for("dump", lambda: "exit" in calls, seconds=SECONDS)
    assert calls == [("save", 4, [{"type": 0, "ranks": [0]}], "arguments"), ("rename", 4), "exit"]
    # An update and a copy of the optimizer's state wait there.
    held = [threading.Thread(target=begin, daemon=True) for begin in (good.begin_update, good.begin_copy)]
    for thread in held:
        thread.start()
        thread.join(0.1)
    assert all(thread.is_alive() for thread in held)
    for one in (good, bad):
        one.leave()


# The SDK's interface.


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in's module, fresh, with a configuration."""
    (tmp_path / "secret").write_text("secret")
    configuration = {
        "run": "run-1",
        "attempt": "train",
        "history": str(tmp_path),
        "secret": str(tmp_path / "secret"),
        "settings": {"timings": "fast"},
    }
    (tmp_path / "agent.json").write_text(json.dumps(configuration))
    monkeypatch.setenv("CHAOS_AGENT", str(tmp_path / "agent.json"))
    monkeypatch.setenv("TTP_LOG_PATH", str(tmp_path / "ttp"))
    monkeypatch.syspath_prepend(str(SDK))
    yield importlib.import_module("mindio_ttp.framework_ttp")
    for name in [name for name in sys.modules if name.split(".")[0] == "mindio_ttp"]:
        del sys.modules[name]


def test_its_numbers_are_the_vendors(sdk: ModuleType) -> None:
    assert {state.name: state.value for state in sdk.ReportState} == {
        "RS_NORMAL": 0,
        "RS_RETRY": 1,
        "RS_UCE": 2,
        "RS_UCE_CORRUPTED": 3,
        "RS_HCCL_FAILED": 4,
        "RS_INIT_FINISH": 5,
        "RS_PREREPAIR_FINISH": 6,
        "RS_STEP_FINISH": 7,
        "RS_UNKNOWN": 8,
    }
    assert [kind.value for kind in sdk.RepairType] == list(range(7))
    assert (sdk.Action.RETRY.value, sdk.Action.EXIT.value) == (0, 1)
    assert (sdk.OptimizerType.ATTENTION.value, sdk.OptimizerType.MOE.value) == (0, 1)


def test_the_controller_tells_whether_any_rank_is_connected(sdk: ModuleType, port: int) -> None:
    agent = importlib.import_module("mindio_ttp.controller_ttp")
    assert sdk.tft_init_controller is agent.tft_init_controller
    assert agent.tft_query_high_availability_switch() is False
    agent.tft_init_controller(-1, 1, False)
    agent.tft_start_controller("127.0.0.1", port, False, "")
    assert agent.tft_query_high_availability_switch() is False
    sdk.tft_init_processor(0, 1, False)
    sdk.tft_start_processor("127.0.0.1", port)
    assert agent.tft_query_high_availability_switch() is True
    agent.tft_destroy_controller()
    assert agent.tft_query_high_availability_switch() is False
    sdk.tft_destroy_processor()


def test_a_second_controller_in_one_process_is_the_first_one(sdk: ModuleType, port: int) -> None:
    for _ in range(2):
        sdk.tft_init_controller(-1, 1, False)
        sdk.tft_start_controller("127.0.0.1", port, False, "")
    sdk.tft_init_processor(0, 1, False)
    sdk.tft_start_processor("127.0.0.1", port)
    sdk.tft_destroy_processor()
    sdk.tft_destroy_controller()


def test_only_a_hot_switch_can_be_prepared_and_this_stand_in_cannot(sdk: ModuleType) -> None:
    agent = importlib.import_module("mindio_ttp.controller_ttp")
    assert agent.tft_notify_controller_prepare_action("cold switch") == 1
    with pytest.raises(RuntimeError, match="cannot hot switch"):
        agent.tft_notify_controller_prepare_action("hot switch", {1: 1})


def test_what_it_does_not_know_it_refuses(sdk: ModuleType) -> None:
    for switch in ("enable_zit",):
        with pytest.raises(RuntimeError, match="ZIT must be off"):
            sdk.tft_init_controller(0, 4, False, **{switch: True})


def test_a_call_before_the_processor_is_made_says_so(sdk: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="tft_init_processor has not been called"):
        sdk.tft_start_updating_os(-1)


def test_the_step_of_a_loaded_checkpoint_is_the_one_to_go_on_from(sdk: ModuleType) -> None:
    sdk.tft_init_processor(0, 1, False)
    sdk.tft_report_load_ckpt_step(7)
    assert sdk.tft_get_repair_step() == 7
    with pytest.raises(RuntimeError, match="not of 0"):
        sdk.tft_report_load_ckpt_step(0)


def test_every_handler_that_mindspore_registers_can_be_registered(sdk: ModuleType) -> None:
    names = ("save_ckpt", "rename", "exit", "stop", "clean", "repair", "rollback", "rebuild_group", "stream_sync")
    for name in names:
        register = getattr(sdk, f"tft_register_{name}_handler")
        assert register.__name__ == f"tft_register_{name}_handler"
        register(print, "context")
