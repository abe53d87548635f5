"""Heal acts on nothing but what this user's harness has made on this machine: all else is refused, and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.cli import codes
from chaos.cli.main import entry
from chaos.heal.heal import heal_all, heal_run
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.seal import PROOF
from chaos.machine.job.processes import find_run_processes
from chaos.store.directory import RunDirectory, make_private_directory, read_run, write_json


@pytest.fixture
def left(dead: RunDirectory, tmp_path: Path, start: Callable[..., Any]) -> RunDirectory:
    """A run of which something is left: a process, a private directory, and the steps that undo them."""
    make_private_directory(dead.ledger, dead.token, parent=tmp_path)
    dead.ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}, "end every process of the job"))
    start("sleep", "1000", run=dead.token)
    wait_for("it", lambda: find_run_processes(dead.token), seconds=30)
    return dead


def rewritten(**changes: Any) -> Callable[[RunDirectory, pytest.MonkeyPatch], None]:
    """Somebody writes other values into run.json; None takes a key away."""

    def change(run: RunDirectory, _: pytest.MonkeyPatch) -> None:
        described = {**read_run(run.path), **changes}
        write_json(run.path / "run.json", {key: value for key, value in described.items() if value is not None})

    return change


def with_another_key(_: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAOS_KEY", "f" * 64)


def without_a_key(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAOS_KEY")
    monkeypatch.setenv("XDG_STATE_HOME", str(run.path.parent))


def with_a_broken_key(_: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAOS_KEY", "secret")


def proved_anew(**changes: Any) -> Callable[[RunDirectory, pytest.MonkeyPatch], None]:
    """The proof is this user's, and of another place: the directory came there by other ways than by this harness."""

    def change(run: RunDirectory, _: pytest.MonkeyPatch) -> None:
        write_json(run.path / "run.json", run.seal.document({**read_run(run.path), **changes}))

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (rewritten(proof=None), "carries no proof: an earlier version of chaos, or another program"),
        (rewritten(proof=None, host=None, directory=None, inode=None), "carries no proof"),
        (rewritten(proof="0" * 64), "was not made with this user's key"),
        (rewritten(seed=7), "or was changed since"),
        (with_another_key, "was not made with this user's key (the variable CHAOS_KEY)"),
        (without_a_key, "this user has no key"),
        (with_a_broken_key, "its owner is unknown: the key in the variable CHAOS_KEY is none"),
        (proved_anew(host={"name": "node-7", "boot": "another"}), "the run was made on node-7"),
        (proved_anew(owner=12345), "was made as that of user 12345"),
        (proved_anew(inode=1), "the run was made in another directory"),
        (proved_anew(device=1), "the run was made in another directory"),
    ],
)
def test_what_is_not_shown_to_be_this_users_is_refused_and_told_by_step(
    left: RunDirectory,
    reports: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[RunDirectory, pytest.MonkeyPatch], None],
    why: str,
) -> None:
    change(left, monkeypatch)
    before = {path: path.stat().st_mtime_ns for path in left.path.rglob("*") if path.name != ".lock"}
    (process,) = find_run_processes(left.token)
    for report in (heal_run(left.path), *heal_all(reports)):
        assert report.outcome == "refused" and not report.ok
        assert [why in text for text in report.refused] == [True], report.refused
        assert (report.leftovers, report.done, report.failed) == ([], [], [])
        assert report.proposed[0] == f'job: end every process of the job (end-job {{"run": "{left.token}"}})'
        assert report.proposed[1].startswith("private-directory: remove the run's private directory (remove-directory")
        assert report.proposed[2].startswith(f"processes: end {process.identity}")
    assert find_run_processes(left.token) == [process]
    assert {path: path.stat().st_mtime_ns for path in left.path.rglob("*") if path.name != ".lock"} == before


def test_the_command_ends_with_3_and_says_how_to_go_on(
    left: RunDirectory, reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = read_run(left.path)
    del described[PROOF]
    write_json(left.path / "run.json", {**described, "token": left.token})
    left_over = UndoStep("odd", None, "note-kept", {"path": "\x1b[2J"}, "a note\x1b[2J that a terminal would obey")
    Ledger(left.path / "undo.jsonl").record(left_over)
    assert entry(["heal", "--reports", str(reports)]) == codes.HARNESS
    said = capsys.readouterr().out
    assert "REFUSED" in said and f"chaos heal {left.path} --trust" in said and "\x1b" not in said
    assert entry(["heal", left.run, "--reports", str(reports), "--json"]) == codes.HARNESS
    result = json.loads(capsys.readouterr().out)
    (one,) = result["runs"]
    assert (result["healed"], one["outcome"], len(one["would"])) == (False, "refused", 4)


def test_a_run_after_a_reboot_is_still_its_users(left: RunDirectory) -> None:
    """What of it was in the kernel is gone; files, and what is on other machines, have to be put back all the same."""
    host = read_run(left.path)["host"]
    proved_anew(host={**host, "boot": "the one before"}, device=1)(left, None)  # type: ignore[arg-type]
    assert heal_run(left.path).outcome == "healed"


def test_of_a_line_that_somebody_else_has_written_nothing_is_done_and_the_rest_is(
    left: RunDirectory, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / ".chaos-run").write_text(left.token)
    step = UndoStep("x", None, "remove-directory", {"path": str(foreign)}, "remove it")
    Ledger(left.path / "undo.jsonl").record(step)
    report = heal_run(left.path)
    assert report.outcome == "refused" and "undo.jsonl:3: has no proof" in report.refused[0]
    assert [text.partition(":")[0] for text in report.proposed] == ["x"]
    assert [text.partition(":")[0] for text in report.done] == ["job", "private-directory"]
    assert foreign.is_dir()


def test_who_knows_the_identity_of_a_run_can_have_nothing_of_it_ended(
    left: RunDirectory, tmp_path: Path, reports: Path, start: Callable[..., Any]
) -> None:
    forged = reports / "forged-20260101-000000-abcd"
    forged.mkdir()
    write_json(forged / "run.json", {"run": forged.name, "token": left.token})
    Ledger(forged / "undo.jsonl").record(UndoStep("job", None, "end-job", {"run": left.token}))
    assert heal_run(forged).outcome == "refused"
    assert find_run_processes(left.token)


def test_a_forged_close_hides_no_step(left: RunDirectory, start: Callable[..., Any]) -> None:
    Ledger(left.path / "undo.jsonl").close("job", "as if")
    (report,) = heal_all(left.path.parent)
    assert report.outcome == "healed" and any(text.startswith("job: ended") for text in report.done)
    assert any("has no proof" in text for text in report.leftovers)
    assert find_run_processes(left.token) == []
