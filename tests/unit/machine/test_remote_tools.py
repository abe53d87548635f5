"""A remote helper runs the vendor's tools on its node: the calls that faults of a device need, and no others."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.base.clock import Clock
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_open_steps
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.protocol import HelperLost, PlatformError
from chaos.machine.linux.commands import CommandError, NoSuchTool
from chaos.machine.linux.process import identify
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.tool_calls import NodeMachine
from tests.kit.hosts.played_tools import write_tool, write_tools
from tests.unit.machine.conftest import Found, Spec, StartHelper

pytestmark = pytest.mark.processes

DOWN = ("hccn_tool", "-i", "1", "-link", "-s", "down")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tools of the machine that remote helpers start on; the link of card 1 is down while ``down`` is there."""
    made = tmp_path / "tools"
    made.mkdir()
    write_tools(made, tmp_path)
    monkeypatch.setenv("PATH", f"{made}:/usr/bin:/bin")
    return made


def test_a_tool_is_run_there_and_its_words_come_back(start_helper: StartHelper, tools: Path) -> None:
    commands = NodeMachine(start_helper()).commands
    assert commands(*DOWN).checked() == ""
    assert (tools.parent / "down").exists()
    assert commands("hccn_tool", "-i", "1", "-net_health", "-g").checked() == "net health status: Fault\n"
    with pytest.raises(CommandError, match="no such call: -i 2 -net_health -g"):
        commands("hccn_tool", "-i", "2", "-net_health", "-g").checked()


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (("sh", "-c", "true"), ""),
        (("hccn_tool", "-i", "1", "-ip", "-s", "address", "10.0.0.1"), ""),
        (("hccn_tool", "-i", "1 -link -s down\n", "-net_health", "-g"), ""),
        (("npu-smi", "set", "-t", "reset", "-i", "-1", "-c", "0"), "y\n"),
        (("npu-smi", "info"), "y\nand more"),
        (("/usr/bin/npu-smi", "info"), ""),
        ((), ""),
    ],
)
def test_any_other_call_is_refused(start_helper: StartHelper, tools: Path, argv: tuple[str, ...], answer: str) -> None:
    with pytest.raises(PlatformError, match="is no call that a fault of a device needs; it was not run"):
        NodeMachine(start_helper()).commands(*argv, answer=answer)


def test_what_is_lacking_is_told_by_name(
    start_helper: StartHelper, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = [] if os.geteuid() == 0 else ["the user who logs in must be root there"]
    assert start_helper().lacking_tools() == root
    (tools / "hccn_tool").unlink()
    helper = start_helper()
    assert helper.lacking_tools() == ["there is no hccn_tool", *root]
    with pytest.raises(NoSuchTool, match="there is no hccn_tool on this machine"):
        NodeMachine(helper).commands(*DOWN)


def test_of_a_rank_only_what_names_its_device_is_told(start_helper: StartHelper, spec: Spec, found: Found) -> None:
    helper = start_helper()
    helper.start(spec("DEVICE_ID=3 PASSWORD=x sleep 1000 & wait"))
    found(2)
    (rank,) = [process.identity for process in helper.processes("train") if process.cmdline[0] == "sleep"]
    assert NodeMachine(helper).variables(rank) == {"DEVICE_ID": "3"}
    helper.stop("train", 0.0)
    assert NodeMachine(helper).variables(rank) is None


def test_of_a_process_of_nobodys_run_nothing_is_told(start_helper: StartHelper) -> None:
    helper = start_helper()
    with pytest.raises(PlatformError, match="does not carry this run's CHAOS_RUN; its device is not reported"):
        helper.device_variables(identify(os.getpid()))


def undone(tmp_path: Path, clock: Clock, nodes: object, action: str = "recover-link") -> tuple[bool, str]:
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(UndoStep("x", "down", action, {"card": 1, "npu": 1, "chip": 0, "node": 3}))
    context = UndoContext("token", clock, nodes=cast(Any, nodes))
    ((outcome),) = undo_open_steps(ledger, UNDO_ACTIONS, context)
    return outcome.ok, outcome.how


def test_a_link_is_recovered_on_the_node_that_the_ledger_names(
    start_helper: StartHelper, tools: Path, tmp_path: Path, clock: Clock
) -> None:
    helper = start_helper()
    asked: list[int] = []

    def reached(number: int) -> AbstractContextManager[HelperClient]:
        asked.append(number)
        return nullcontext(helper)

    (tmp_path / "down").touch()
    ok, how = undone(tmp_path, clock, SimpleNamespace(helper=reached))
    assert (ok, how) == (
        True,
        "recovered the network of card 1 on the host of node 3: net health Success",
    )
    assert asked == [3]
    assert not (tmp_path / "down").exists()


@pytest.mark.parametrize("action", ["recover-link", "see-chip"])
def test_a_node_that_does_not_answer_leaves_the_card_open_and_says_what_to_do(
    tmp_path: Path, clock: Clock, action: str
) -> None:
    def lost(number: int) -> Any:
        raise HelperLost(f"node {number}: no route to host")

    ok, how = undone(tmp_path, clock, SimpleNamespace(helper=lost), action)
    assert not ok
    assert "on the host of node 3 is" in how and "node 3: no route to host" in how


def test_a_node_that_is_no_more_is_not_taken_for_one_that_was_put_back(tmp_path: Path, clock: Clock) -> None:
    ok, how = undone(tmp_path, clock, SimpleNamespace(helper=lambda number: nullcontext(None)))
    assert not ok and "node 3 is no more" in how and "by hand, as root on the host of node 3" in how


def test_a_slow_tool_keeps_nothing_else_from_being_answered(start_helper: StartHelper, tools: Path) -> None:
    began, end = tools / "began", tools / "end"
    for pipe in (began, end):
        os.mkfifo(pipe)
    write_tool(tools / "npu-smi", f"open({str(began)!r}, 'w').close()\nopen({str(end)!r}).close()\nprint('at last')")
    helper = start_helper()
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(NodeMachine(helper).commands, "npu-smi", "info")
        began.open().close()
        assert helper.find() == []
        assert not asked.done()
        end.open("w").close()
        assert asked.result(30).checked() == "at last\n"


def test_a_tool_that_a_killed_helper_has_begun_is_waited_for(start_helper: StartHelper, tools: Path) -> None:
    """It would take the link down after it was recovered."""
    began, end = tools / "began", tools / "end"
    for pipe in (began, end):
        os.mkfifo(pipe)
    slow = f"if 'down' in sys.argv:\n    open({str(began)!r}, 'w').close()\n    open({str(end)!r}).close()\n"
    write_tool(tools / "hccn_tool", f"import sys\n{slow}")
    killed = start_helper()
    with ThreadPoolExecutor() as pool:
        begun = pool.submit(NodeMachine(killed).commands, *DOWN)
        began.open().close()
        os.kill(killed.introduction.pid, signal.SIGKILL)
        with pytest.raises(HelperLost):
            begun.result(30)
        recovering = pool.submit(NodeMachine(start_helper()).commands, "hccn_tool", "-i", "1", "-cfg", "recovery")
        with pytest.raises(NotYet):
            recovering.result(0.5)
        end.open("w").close()
        assert recovering.result(30).code == 0
