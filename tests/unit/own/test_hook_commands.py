"""Commands around a run: their ends and outputs are in the history, and one that fails before the job stops it."""

from __future__ import annotations

import sys

import pytest

from chaos.own.allowed import NOTHING, Allowed, allowed, in_words
from chaos.own.hooks import HookFailed, run_hooks
from chaos.scenario.models.own import Hook
from tests.unit.own.conftest import OwnRun

pytestmark = pytest.mark.processes

SAY = (sys.executable, "-c", "import os; print(os.environ['CHAOS_HOOK'], os.environ['CHAOS_SCENARIO'], os.getcwd())")
FAIL = ("sh", "-c", "echo no; exit 3")


def hooks(own_run: OwnRun, stage: str, *commands: tuple[str, ...], allowance: Allowed | None = None) -> list[str]:
    """Run the commands; return the notes."""
    notes: list[str] = []
    chosen = [Hook(command=command, limit=60.0) for command in commands]
    allowance = allowed([], map(in_words, commands)) if allowance is None else allowance
    run_hooks(stage, chosen, own_run.place, allowance, own_run.history.record, notes.append)
    return notes


def test_the_end_and_the_output_of_a_command_are_in_the_history(own_run: OwnRun) -> None:
    assert hooks(own_run, "before", SAY) == []
    (begin,) = own_run.read().select("hook.begin")
    (end,) = own_run.read().select("hook.end")
    assert begin.data["command"] == list(SAY)
    assert (end.data["status"], end.data["timed_out"], end.data["left"]) == (0, False, 0)
    assert end.data["output"] == f"before mine {own_run.directory}\n"
    assert not own_run.owned.ledger.open_steps()


def test_before_a_run_the_first_that_fails_stops_it(own_run: OwnRun) -> None:
    with pytest.raises(HookFailed, match="hook before 1, sh -c 'echo no; exit 3', ended with status 3"):
        hooks(own_run, "before", FAIL, SAY)
    assert [end.data["output"] for end in own_run.read().select("hook.end")] == ["no\n"]


def test_after_a_run_all_are_run_and_failures_are_told(own_run: OwnRun) -> None:
    notes = hooks(own_run, "after", FAIL, ("./not-there",), SAY)
    assert notes == [
        "hook after 1, sh -c 'echo no; exit 3', ended with status 3",
        "hook after 2, ./not-there, could not be started: there is no such program",
    ]
    assert [end.data["status"] for end in own_run.read().select("hook.end")] == [3, None, 0]


def test_a_command_that_is_not_allowed_is_not_run(own_run: OwnRun) -> None:
    marker = own_run.directory / "marker"
    hooks(own_run, "after", ("touch", str(marker)), allowance=NOTHING)
    assert not marker.exists()
    (end,) = own_run.read().select("hook.end")
    assert end.data["output"] == "it is not allowed here"


def test_no_shell_reads_a_command(own_run: OwnRun) -> None:
    hooks(own_run, "after", ("echo", "$HOME", ";", "id"))
    (end,) = own_run.read().select("hook.end")
    assert end.data["output"] == "$HOME ; id\n"


def test_the_users_key_is_no_ones_but_the_harness(own_run: OwnRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAOS_KEY", "0" * 64)
    hooks(own_run, "after", ("env",))
    (end,) = own_run.read().select("hook.end")
    assert "CHAOS_KEY" not in end.data["output"] and "CHAOS_RUN=" in end.data["output"]
