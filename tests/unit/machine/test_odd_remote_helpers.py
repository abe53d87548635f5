"""A helper is on another host: whatever it says, its client ends in the errors that it names, and no thread dies."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import HelperLost, LaunchSpec, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.commands import CommandError, NoSuchTool
from chaos.machine.linux.net.connections import Connection
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, WrongProcess
from chaos.machine.remote.client import HelperClient, Visitors
from chaos.machine.remote.wire import PROTOCOL
from chaos.platforms.docker import limits
from chaos.platforms.nodes import Node
from chaos.run.watch import nodes_left
from tests.kit.examples import examples

pytestmark = pytest.mark.processes

HELLO = {"hello": PROTOCOL, "pid": 7, "uid": 0, "host": "h", "boot": "b", "python": "3.9.2"}
WHO = ProcessIdentity(7, 100, "b", 3)
SPEC = LaunchSpec("run", "train", ("x",), {}, Path("/"), Path("/log"))

CALLS: dict[str, Callable[[HelperClient], Any]] = {
    "remove": lambda helper: helper.remove("/x"),
    "files": lambda helper: helper.files("/x"),
    "read": lambda helper: helper.read("/x"),
    "start": lambda helper: helper.start(SPEC),
    "processes": lambda helper: helper.processes("train"),
    "state": lambda helper: helper.state(WHO),
    "exit_status": lambda helper: helper.exit_status("train", WHO),
    "signals": lambda helper: helper.signals(WHO),
    "stop": lambda helper: helper.stop("train", 1),
    "find": lambda helper: helper.find(),
    "end_run": lambda helper: helper.end_run(),
    "leftovers": lambda helper: helper.leftovers(["/x"]),
    "standing": lambda helper: helper.standing("/x"),
    "clock_offset": lambda helper: helper.clock_offset(SYSTEM_CLOCK),
    "list_rules": lambda helper: helper.list_rules(),
    "lift": lambda helper: helper.lift(),
    "look": lambda helper: helper.look("f", ["10.0.0.1"], count=1, wait=0.1),
    "echo": lambda helper: helper.echo(["10.0.0.1"], count=1, interval=0.1, wait=0.1),
    "devices": lambda helper: helper.devices(),
    "connections_at": lambda helper: helper.connections_at("10.0.0.1", 1, []),
    "attempt": lambda helper: helper.attempt("10.0.0.1", "10.0.0.2", 1, 0.1),
    "connected": lambda helper: helper.connected("10.0.0.1", [], of_run=True),
    "tool": lambda helper: helper.tool(("npu-smi",)),
    "lacking": lambda helper: helper.lacking("python", ["numpy"]),
    "lacking_tools": lambda helper: helper.lacking_tools(),
    "device_variables": lambda helper: helper.device_variables(WHO),
    "reset": lambda helper: helper.reset(Connection("10.0.0.1", 1, "10.0.0.2", 2, 0, 3, 4)),
}
ORDERS: dict[str, Callable[[HelperClient], Any]] = {
    "place": lambda helper: helper.place("/x", {}),
    "open_roots": lambda helper: helper.open_roots(["/x"]),
    "listen": lambda helper: helper.listen("/x"),
    "signal": lambda helper: helper.signal("train", WHO, 9),
    "resume": lambda helper: helper.resume(WHO),
    "check_network": lambda helper: helper.check_network("10.0.0.1", []),
    "lay": lambda helper: helper.lay("f", []),
    "send_from": lambda helper: helper.send_from("10.0.0.1", 1, []),
}
"""Calls to which nothing is answered but that they are done."""

REQUESTS = {"exit_status": "exit_statuses", "clock_offset": "clock", "connections_at": "look_at_port"}
REQUESTS["check_network"] = "network_check"
NAMED: dict[str, tuple[type[Exception], ...]] = {
    "signal": (NoSuchProcess, WrongProcess),
    "resume": (NoSuchProcess, WrongProcess),
    "tool": (CommandError, NoSuchTool),
}
"""Errors that a caller tells from others; of every other call comes PlatformError alone."""


class OddTransport:
    """A remote helper that says hello, answers the request ``begin``, and each other one as ``answer`` says."""

    def __init__(self, answer: Callable[[int], list[bytes]], first: list[bytes] | None = None) -> None:
        self._answer = answer
        self._said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for one in [line(HELLO)] if first is None else first:
            self._said.put(one)

    def write(self, data: bytes) -> None:
        asked = json.loads(data)
        begins = asked["request"] == "begin"
        for one in [line({"answer": asked["number"], "result": None})] if begins else self._answer(asked["number"]):
            self._said.put(one)

    def say(self, *said: bytes) -> None:
        for one in said:
            self._said.put(one)

    def read(self) -> bytes:
        return self._said.get()

    def close(self) -> None:
        self._said.put(b"")

    def ended(self) -> str:
        return "it has ended"


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def result(value: Any) -> Callable[[int], list[bytes]]:
    return lambda number: [line({"answer": number, "result": value})]


@pytest.fixture(autouse=True)
def died(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """No thread ends by an exception that nobody has caught."""
    found: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", found.append)
    yield found
    assert found == []


class Guests:
    """Visitors, and their visits, of which each may fail."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.heard: list[str] = []

    def _do(self, what: str) -> None:
        self.heard.append(what)
        if what == self.fails:
            raise RuntimeError(f"{what} fails")

    def visit(self, helper: HelperClient, caller: int, pid: int, uid: int) -> Guests:
        self._do("visit")
        assert helper.introduction.uid == 0
        return self

    def hear(self, line: bytes) -> bool:
        self._do("hear")
        return True

    def end(self) -> None:
        self._do("end")


def lost(said: list[bytes], visitors: Visitors | None = None) -> str:
    """What is said of a remote helper that must be lost by what it says, and at once."""
    transport = OddTransport(result([]))
    helper = HelperClient(transport, 3, "run", visitors)
    transport.say(*said)
    helper._reader.join(60)
    assert not helper._reader.is_alive()
    with pytest.raises(HelperLost) as error:
        helper.find()
    return str(error.value)


def encoded(value: Any) -> Callable[[int], list[bytes]]:
    """An answer with that result; what JSON has no word for is a number that is too large."""
    said = json.dumps(value).replace("Infinity", "1e400").encode()
    return lambda number: [b'{"answer": %d, "result": %b}\n' % (number, said)]


OPEN = {"event": "agent.open", "caller": 1, "pid": 7, "uid": 0}


@pytest.mark.parametrize(
    "message",
    [
        {"answer": []},
        {"answer": {}, "result": 1},
        {"answer": "1", "result": 1},
        {"answer": 5},
        {"event": "agent.open", "caller": "x"},
        {"event": "agent.open", "caller": 1},
        {"event": "agent.open", "caller": 1, "pid": None, "uid": 0},
        {"event": "agent.open", "caller": 1, "pid": 1e300, "uid": 0},
        {"event": "agent.line", "caller": True},
        {"event": [], "caller": None},
        {"caller": 1},
        {},
        HELLO,
    ],
)
def test_what_no_helper_says_loses_it_by_name(message: Any) -> None:
    said = [line(message)]
    assert "sent an invalid message" in lost(said, Guests())


@pytest.mark.parametrize("said", [b'{"answer": NaN}\n', b'{"answer": %b}\n' % (b"9" * 5000), b"\xff\n", b"[]\n"])
def test_what_is_no_json_loses_it_by_name(said: bytes) -> None:
    assert "sent an invalid message" in lost([said])


@pytest.mark.parametrize("more", [[OPEN, OPEN], [OPEN, {"event": "agent.line", "caller": 1, "line": "\ud800"}]])
def test_an_agent_is_heard_as_what_it_can_be(more: list[Any]) -> None:
    said = [line(one) for one in more]
    guests = Guests()
    assert "sent an invalid message" in lost(said, guests)
    assert guests.heard == ["visit", "end"]


@pytest.mark.parametrize("fails", ["visit", "hear", "end"])
def test_a_visitor_that_fails_is_told_and_nobody_waits(fails: str) -> None:
    events = [OPEN, {"event": "agent.line", "caller": 1, "line": "x"}, {"event": "agent.end", "caller": 1}]
    said = [line(event) for event in events]
    assert f"{fails} fails" in lost(said, Guests(fails))


def test_the_end_of_one_agent_that_cannot_be_told_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    transport, guests = OddTransport(result([])), Guests("end")
    helper = HelperClient(transport, 3, "run", guests)
    transport.say(line(OPEN), line({**OPEN, "caller": 2}), b"")
    helper._reader.join(60)
    assert guests.heard == ["visit", "visit", "end", "end"]
    assert "the end of an agent cannot be taken in" in caplog.text


@pytest.mark.parametrize(
    "first",
    [
        [{**HELLO, "pid": "7"}],
        [{**HELLO, "host": 7}],
        [{"hello": True}],
        [{"hello": []}],
        [{"hello": PROTOCOL}],
        [{"lost": "x"}],
        [OPEN, HELLO],
        [HELLO, OPEN, OPEN],
    ],
)
def test_who_does_not_introduce_itself_is_lost_and_hears_no_agent(first: list[Any]) -> None:
    guests = Guests()
    transport = OddTransport(result(None), [b"".join(map(line, first))])
    with pytest.raises(HelperLost):
        HelperClient(transport, 3, "run", guests).find()
    assert guests.heard in ([], ["visit", "end"])


def test_an_event_before_it_has_begun_reaches_nobody() -> None:
    guests = Guests()
    with pytest.raises(HelperLost, match="could not be started: it sent an invalid message: an event"):
        HelperClient(OddTransport(result(None), [line(OPEN)]), 3, "run", guests)
    assert guests.heard == []


HUGE = [10**4000]
SHAPES: list[Any] = [None, 1, -1.5, True, "x", "é", [], [1], [None, None], ["x"], {}, {"mono": "x"}, HUGE, [{}], [[]]]
SHAPES += [{"mono": 1e400}, {"mono": 10**30}, {"pid": [], "start_time": 1, "boot": "b"}, [{"path": [], "size": 1}]]
SHAPES += [{"caught": 1, "ignored": [], "pending": []}, {"caught": [[]], "ignored": [], "pending": []}]
SHAPES += [{"ended": 1, "remaining": [1]}, {"processes": None, "mounts": None}, [{"signal": "x", "code": {}}]]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_answer_of_another_shape_is_a_platform_error_that_names_the_call(name: str) -> None:
    refused = 0
    for shape in SHAPES:
        helper = HelperClient(OddTransport(encoded(shape)), 3, "run")
        try:
            CALLS[name](helper)
        except PlatformError as error:
            assert not isinstance(error, HelperLost)
            assert f"remote helper on node 3: its answer to {REQUESTS.get(name, name)!r}" in str(error)
            refused += 1
        assert helper.lost is None
        helper.close()
    assert refused > 10


ERRORS: list[Any] = ["NoSuchProcess", "WrongProcess", "RefusedProcess", "PermissionError", "CommandError", "NoSuchTool"]
ERRORS += [
    "HelperLost",
    "PlatformError",
    "OSError",
    "KeyboardInterrupt",
    "KeyError",
    "Refused",
    "",
    None,
    1,
    [],
    {"a": 1},
]


def failing(error: Any, text: Any) -> HelperClient:
    """A remote helper that answers every request but the first with that error."""
    said = {"error": error, "text": text, "lost": "x"}
    return HelperClient(OddTransport(lambda number: [line({"answer": number, **said})]), 3, "run")


def test_every_call_is_looked_at() -> None:
    here = {"answer", "hang_up", "close"}  # nobody waits for an answer to these
    public = {name for name in dir(HelperClient) if not name.startswith("_") and callable(getattr(HelperClient, name))}
    assert public - here == set(CALLS | ORDERS)


@pytest.mark.parametrize("name", sorted(CALLS | ORDERS))
def test_an_error_of_a_helper_is_one_that_its_call_names(name: str) -> None:
    for error in ERRORS:
        helper = failing(error, "no")
        named = {error_type.__name__: error_type for error_type in NAMED.get(name, ())}
        with pytest.raises((PlatformError, *named.values())) as found:
            (CALLS | ORDERS)[name](helper)
        assert type(found.value) is (named.get(error, PlatformError) if isinstance(error, str) else PlatformError)
        assert str(found.value) == f"node 3: {REQUESTS.get(name, name)}: no"
        assert helper.lost is None
        helper.close()


@pytest.mark.parametrize("text", [None, 1, [1], {"a": 1}, "x" * 100_000])
def test_what_a_helper_says_of_an_error_is_text_of_some_length(text: Any) -> None:
    helper = failing("CommandError", text)
    with pytest.raises(PlatformError) as found:
        helper.leftovers([])
    message = "x" * 2000 if isinstance(text, str) else "its remote helper does not say why it refuses that"
    assert str(found.value) == f"node 3: leftovers: {message}"
    helper.close()


@pytest.mark.parametrize("error", ERRORS)
def test_what_is_left_on_a_node_whose_helper_fails_is_recorded_as_unasked(error: Any, tmp_path: Path) -> None:
    helper = failing(error, "no")
    node = cast("Node", SimpleNamespace(number=3, helper=helper, known="running", private=Path("/x")))
    path = tmp_path / "harness.jsonl"
    with HistoryWriter(path, writer="harness", run="run", clock=SYSTEM_CLOCK) as history:
        nodes_left.record_on_nodes(history, "run", [], [node], ["/x"])
    assert json.loads(path.read_text().splitlines()[1])["unasked"] == "node 3: leftovers: no"
    helper.close()


def test_names_that_are_no_text_of_unicode_are_told_as_they_are() -> None:
    name = "/x\udcff"
    helper = HelperClient(OddTransport(result([{"path": name, "size": 1, "changed": 2}])), 3, "run")
    assert helper.files("/x") == {name: (1, 2)}
    helper.close()


def test_a_status_is_the_kernels_word_alone() -> None:
    helper = HelperClient(OddTransport(result([{"signal": 9, "code": None, "told_by": "x"}])), 3, "run")
    status = helper.exit_status("train", WHO)
    assert (status, status and status.told_by) == (ExitStatus(signal=9), "")
    helper.close()


def test_a_count_of_the_kernel_is_a_number() -> None:
    helper = HelperClient(OddTransport(result("bnJfdGhyb3R0bGVkIHgKbnJfdGhyb3R0bGVkIP8K")), 3, "run")
    with pytest.raises(PlatformError, match="does not count"):
        limits.throttled(helper)
    helper.close()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([1, 7, 10**4000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = ["answer", "result", "error", "text", "event", "caller", "pid", "uid", "line", "hello", "lost"]
_WORDS = st.sampled_from(["agent.open", "agent.line", "agent.end", "HelperLost", "WrongProcess", 1, 2, 3])
_MESSAGES = st.dictionaries(st.sampled_from(_KEYS), _WORDS | _JSON, max_size=5)


@examples(60)
@given(
    st.lists(_MESSAGES, max_size=6),
    _JSON,
    st.sampled_from(sorted(CALLS | ORDERS)),
    st.sampled_from(["", "visit", "hear"]),
)
def test_whatever_a_helper_says_comes_out_as_a_named_error(
    said: list[dict[str, Any]], value: Any, name: str, fails: str
) -> None:
    found: list[Any] = []
    before, threading.excepthook = threading.excepthook, found.append
    logging.disable(logging.CRITICAL)
    try:
        # The answer comes last, so that every call ends without its deadline.
        transport = OddTransport(lambda number: [*map(line, said), line({"answer": number, "result": value})])
        helper = HelperClient(transport, 3, "run", Guests(fails))
        with contextlib.suppress(PlatformError, *NAMED.get(name, ())):
            (CALLS | ORDERS)[name](helper)
            (CALLS | ORDERS)[name](helper)
        helper.close()
        assert not helper._reader.is_alive()
    finally:
        logging.disable(logging.NOTSET)
        threading.excepthook = before
    assert found == []
