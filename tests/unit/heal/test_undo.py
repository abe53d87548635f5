"""Undo actions work on what is the run's own and on nothing else, and can be repeated."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.heal.undo import (
    UNDO_ACTIONS,
    CannotUndo,
    UndoContext,
    end_job,
    in_order,
    remove_directory,
    undo_open_steps,
)
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.store.directory import MARKER, private_name

pytestmark = pytest.mark.processes

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def context(token: str) -> UndoContext:
    return UndoContext(token, SYSTEM_CLOCK)


def step(action: str, **arguments: Any) -> UndoStep:
    return UndoStep("u1", "stop-1", action, arguments, "a note")


def test_steps_are_undone_in_reverse_and_one_that_fails_stays_open(tmp_path: Path, context: UndoContext) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    order: list[str] = []

    def good(undo: UndoStep, _: UndoContext) -> str:
        order.append(undo.id)
        return f"did {undo.id}"

    def bad(undo: UndoStep, _: UndoContext) -> str:
        order.append(undo.id)
        raise CannotUndo("no")

    def broken(undo: UndoStep, _: UndoContext) -> str:
        raise PermissionError(1, "Operation not permitted")

    def defective(undo: UndoStep, _: UndoContext) -> str:
        raise KeyError("pid")

    actions = {"good": good, "bad": bad, "broken": broken, "defective": defective}
    keys = (("a", "good"), ("b", "bad"), ("c", "missing"), ("d", "broken"), ("e", "good"), ("f", "defective"))
    for key, action in keys:
        ledger.record(UndoStep(key, None, action, {}, "by hand"))
    undone = undo_open_steps(ledger, actions, context)
    assert order == ["e", "b", "a"]
    assert [(item.step.id, item.ok) for item in undone] == [
        ("f", False),
        ("e", True),
        ("d", False),
        ("c", False),
        ("b", False),
        ("a", True),
    ]
    assert undone[0].how == "KeyError: 'pid'; by hand"
    assert undone[3].how.startswith("there is no undo action 'missing' here: install the package")
    assert undone[3].how.endswith("; by hand")
    assert [open_step.id for open_step in ledger.open_steps()] == ["f", "d", "c", "b"]
    assert ledger.read().closed == {"e": "did e", "a": "did a"}


def test_ending_a_job_ends_the_runs_processes_only(start: Start, token: str, context: UndoContext) -> None:
    other = start("sleep", "1000", run=token + "-other")
    start(
        "sh", "-c", "trap '' TERM; sleep 1000 & env -i sleep 1001 & wait", run=token, MS_ROLE="MS_WORKER", RANK_ID="3"
    )
    wait_for("three processes", lambda: len(find_run_processes(token)) == 3, seconds=60)
    answer = end_job(step("end-job", run=token), context)  # in order of PIDs, which may have begun anew
    assert answer.startswith("ended ") and "rank 3 " in answer
    assert find_run_processes(token) == []
    assert other.poll() is None
    assert end_job(step("end-job", run=token), context) == "no process of the run was left"


def test_a_launcher_of_the_users_own_may_end_by_itself(
    start: Start, token: str, context: UndoContext, tmp_path: Path
) -> None:
    """An srun that is killed leaves its allocation; one that is asked gives it back."""
    given_back = tmp_path / "given-back"
    program = f"trap 'touch {given_back}; exit' TERM; RANK=0 sh -c 'exec sleep 1000' & touch {tmp_path}/began; wait"
    start("sh", "-c", program, run=token, CHAOS_RANKS="RANK/WORLD_SIZE")
    wait_for("the launcher and its rank", lambda: len(find_run_processes(token)) == 2, seconds=60)
    wait_for("the trap", (tmp_path / "began").exists, seconds=60)
    answer = end_job(step("end-job", run=token), context)
    assert "rank 0 " in answer and given_back.exists()
    assert find_run_processes(token) == []


def test_the_job_of_another_run_is_not_ended(start: Start, token: str, context: UndoContext) -> None:
    other = start("sleep", "1000", run=token + "-other")
    with pytest.raises(CannotUndo, match="nothing was ended"):
        end_job(step("end-job", run=token + "-other"), context)
    assert other.poll() is None


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (range(2), "ended launcher 7, rank 0 100, rank 1 101"),
        (range(128), "ended ranks 0-127 (128 in all), launcher 7"),
    ],
)
def test_of_very_many_ranks_that_are_ended_it_is_told_which_they_are(
    monkeypatch: pytest.MonkeyPatch, context: UndoContext, token: str, ranks: range, told: str
) -> None:
    launcher = SimpleNamespace(role="launcher", rank=None, pid=7)
    ended = [launcher, *(SimpleNamespace(role="rank", rank=rank, pid=100 + rank) for rank in ranks)]
    result = SimpleNamespace(remaining=(), ended=ended)
    monkeypatch.setattr("chaos.heal.undo.end_processes", lambda *_, **__: result)
    assert end_job(step("end-job", run=token), context) == told


@pytest.fixture
def private(tmp_path: Path, token: str) -> Path:
    """A private directory of the run, with files, a tree, and a link that leads out of it."""
    path = tmp_path / "private"
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / "er" / "file").write_text("x")
    (path / "agent.sock").write_text("")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep")
    (path / "link").symlink_to(outside)
    (path / "deep" / "link").symlink_to(outside)
    (path / MARKER).write_text(token)
    return path


def test_a_private_directory_is_removed_and_no_link_is_followed(
    private: Path, tmp_path: Path, context: UndoContext
) -> None:
    undo = step("remove-directory", path=str(private))
    assert remove_directory(undo, context) == f"removed {private}"
    assert not private.exists()
    assert (tmp_path / "outside" / "precious").read_text() == "keep"
    assert remove_directory(undo, context) == f"{private} does not exist"


def test_a_removal_that_was_cut_off_is_completed(
    private: Path, context: UndoContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = step("remove-directory", path=str(private))
    steps = 0
    while True:
        budget, left = steps, steps

        class Killed(BaseException):
            pass

        def cut(real: Callable[..., None]) -> Callable[..., None]:
            def act(*arguments: Any, **more: Any) -> None:
                nonlocal left
                if left == 0:
                    raise Killed
                left -= 1
                real(*arguments, **more)

            return act

        copy = private.with_name(f"copy-{budget}") / private_name(context.token)
        shutil.copytree(private, copy, symlinks=True)
        undo = step("remove-directory", path=str(copy))
        with monkeypatch.context() as patch:
            for name in ("unlink", "rmdir"):
                patch.setattr(os, name, cut(getattr(os, name)))
            try:
                remove_directory(undo, context)
                finished = True
            except Killed:
                finished = False
        remove_directory(undo, context)
        assert not copy.exists()
        if finished:
            break
        steps += 1
    assert steps > 5


@pytest.mark.parametrize("marker", [None, "another-run", "", "x" * 10_000])
def test_a_directory_without_this_runs_marker_is_left_alone(
    private: Path, context: UndoContext, marker: str | None
) -> None:
    (private / MARKER).unlink()
    if marker is not None:
        (private / MARKER).write_text(marker)
    with pytest.raises(CannotUndo, match="does not carry this run's marker"):
        remove_directory(step("remove-directory", path=str(private)), context)
    assert (private / "deep" / "er" / "file").exists()


def test_a_marker_that_is_a_link_proves_nothing(
    private: Path, tmp_path: Path, context: UndoContext, token: str
) -> None:
    (private / MARKER).unlink()
    (tmp_path / "forged").write_text(token)
    (private / MARKER).symlink_to(tmp_path / "forged")
    with pytest.raises(CannotUndo, match="cannot be read"):
        remove_directory(step("remove-directory", path=str(private)), context)
    assert (private / "agent.sock").exists()


def test_a_directory_whose_making_was_cut_off_is_removed(tmp_path: Path, context: UndoContext) -> None:
    for marker in (None, ""):
        path = tmp_path / private_name(context.token)
        path.mkdir()
        if marker is not None:
            (path / MARKER).write_text(marker)
        assert remove_directory(step("remove-directory", path=str(path)), context) == f"removed {path}"
        assert not path.exists()


def test_an_empty_directory_of_another_name_is_left_alone(tmp_path: Path, context: UndoContext) -> None:
    for marker in (None, ""):
        if marker is not None:
            (tmp_path / MARKER).write_text(marker)
        with pytest.raises(CannotUndo, match="has not the name of this run's directories"):
            remove_directory(step("remove-directory", path=str(tmp_path)), context)
        assert tmp_path.is_dir()


def test_an_empty_directory_of_another_run_is_left_alone(tmp_path: Path, context: UndoContext) -> None:
    (tmp_path / MARKER).write_text("another-run")
    with pytest.raises(CannotUndo, match="another run's marker"):
        remove_directory(step("remove-directory", path=str(tmp_path)), context)
    assert (tmp_path / MARKER).exists()


def test_what_is_no_directory_of_this_user_is_left_alone(
    private: Path, tmp_path: Path, context: UndoContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alias").symlink_to(private)
    (tmp_path / "file").write_text("")
    for name in ("alias", "file"):
        with pytest.raises(CannotUndo, match="is not a directory"):
            remove_directory(step("remove-directory", path=str(tmp_path / name)), context)
    for path in ("relative/path", ""):
        with pytest.raises(CannotUndo, match="absolute path"):
            remove_directory(step("remove-directory", path=path), context)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(CannotUndo, match="belongs to user"):
        remove_directory(step("remove-directory", path=str(private)), context)
    assert (private / "agent.sock").exists()


def test_the_runs_own_actions_are_known_by_name() -> None:
    assert set(UNDO_ACTIONS) == {
        "resume-process",
        "continue-training",
        "note-kept",
        "end-job",
        "end-nodes",
        "restore-node",
        "release-cluster-node",
        "delete-mesh-object",
        "recover-public-fault",
        "mend-network",
        "remove-directory",
        "unmount-storage",
        "resume-adopted",
        "restore-limit-adopted",
        "recover-link",
        "see-chip",
        "restore-checkpoint",
        "restore-checkpoint-adopted",
        "thaw-storage",
        "allow-writing",
        "switch-off",
        "leave-group",
        "restore-limit",
        "remove-memory-group",
    }


def test_directories_are_taken_away_after_the_processes_that_write_in_them() -> None:
    names = ["remove-directory", "unmount-storage", "resume-process", "remove-directory", "end-job"]
    steps = [UndoStep(id=str(number), fault=None, action=name, arguments={}) for number, name in enumerate(names)]
    assert [step.id for step in in_order(steps)] == ["2", "4", "0", "1", "3"]
