"""Directories of runs: their names are safe and their own, and what is replaced is replaced in one step."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from datetime import datetime
from pathlib import Path

import pytest

from chaos.base.clock import Clock
from chaos.heal.undo import UndoContext, remove_directory
from chaos.history.ledger import Ledger, UndoStep
from chaos.store.directory import (
    MARKER,
    RUN_NAME,
    RunDirectory,
    RunDirectoryError,
    create_run,
    make_private_directory,
    point_latest,
    read_run,
    unfinished_files,
    update_run,
    write_json,
)
from chaos.store.ownership import is_live


def test_a_new_run_is_owned_and_has_its_identity_on_disk(reports: Path, clock: Clock) -> None:
    run = create_run(reports, "kill-rank", "rank=2,step=5", clock=clock)
    assert re.fullmatch(r"kill-rank-rank-2-step-5-\d{8}-\d{6}-[0-9a-f]{4}", run.run)
    assert RUN_NAME.fullmatch(run.run)
    assert re.fullmatch(re.escape(run.run) + r"-[0-9a-f]{16}", run.token)
    assert run.path == reports / run.run
    assert is_live(run.path)
    assert (run.path / "history").is_dir()
    record = read_run(run.path)
    assert (record["run"], record["token"]) == (run.run, run.token)
    assert datetime.fromisoformat(record["created"]).tzinfo is not None
    assert run.ledger.open_steps() == []


@pytest.mark.parametrize(
    ("scenario", "cell"), [("..", ""), ("-x", "/etc/passwd"), ("ü", "a b\nc"), ("a" * 300, "b" * 300), ("", "")]
)
def test_a_name_is_always_safe_for_files(reports: Path, scenario: str, cell: str) -> None:
    run = create_run(reports, scenario, cell)
    assert run.path.parent == reports
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", run.run)
    assert len(run.run) < 130


def test_a_name_that_is_taken_is_an_error_and_leaves_the_other_run_alone(reports: Path, clock: Clock) -> None:
    def same(count: int) -> str:
        return "00" * count

    first = create_run(reports, "a", clock=clock, random_hex=same)
    with pytest.raises(RunDirectoryError, match="File exists"):
        create_run(reports, "a", clock=clock, random_hex=same)
    assert read_run(first.path)["token"] == first.token


def test_nothing_is_left_of_a_run_that_could_not_be_made(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, value: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("chaos.store.directory.write_json", fail)
    with pytest.raises(RunDirectoryError, match="No space left"):
        create_run(reports, "a")
    assert [path for path in reports.iterdir() if path.is_dir()] == []


def test_run_json_is_completed_and_keeps_its_identity(run: RunDirectory) -> None:
    update_run(run.path, seed=3, scenario="kill-rank")
    update_run(run.path, seed=4)
    assert read_run(run.path) == {**read_run(run.path), "seed": 4, "scenario": "kill-rank", "token": run.token}
    with pytest.raises(ValueError, match="token of a run cannot be changed"):
        update_run(run.path, token="other")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"run": "a", "token": ""}', '{"run": "a", "token": 1}'])
def test_a_run_json_without_an_identity_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=re.escape(str(tmp_path / "run.json"))):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        read_run(tmp_path / "missing")


def test_latest_always_points_at_a_run_while_it_is_replaced(reports: Path) -> None:
    runs = [create_run(reports, f"r{number}") for number in range(2)]
    point_latest(reports, runs[0].run)
    done = threading.Event()
    seen: list[Path] = []

    def look() -> None:
        while not done.is_set() or not seen:
            seen.append((reports / "latest").resolve(strict=True))

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(200):
        point_latest(reports, runs[number % 2].run)
    done.set()
    thread.join()
    assert set(seen) <= {run.path for run in runs}
    assert (reports / "latest").readlink() == Path(runs[1].run), "relative, so that reports can be moved"
    assert unfinished_files(reports) == []


def test_a_real_directory_called_latest_is_not_replaced(reports: Path) -> None:
    (reports / "latest").mkdir(parents=True)
    with pytest.raises(RunDirectoryError, match="latest: cannot be replaced"):
        point_latest(reports, "a")
    assert unfinished_files(reports) == []


def test_a_file_is_replaced_in_one_step_and_what_was_cut_off_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"a": 1})

    class Killed(BaseException):
        pass

    def killed(self: Path, target: Path) -> Path:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    (leftover,) = unfinished_files(tmp_path)
    assert json.loads(leftover.read_text()) == {"a": 2}
    for name in (".lock", ".run.json.new", "run.json.00000000.new", ".x.0000000.new"):
        (tmp_path / name).write_text("")
    assert unfinished_files(tmp_path) == [leftover]


def test_a_private_directory_is_in_the_ledger_before_it_is_made(tmp_path: Path, run: RunDirectory) -> None:
    parent = tmp_path / "missing"
    with pytest.raises(FileNotFoundError):
        make_private_directory(run.ledger, run.token, parent=parent)
    (step,) = run.ledger.open_steps()
    assert step.arguments == {"path": str(parent / f"chaos-{run.token[-16:]}")}


def test_a_private_directory_leaves_a_temporary_directory_too_deep_for_sockets(
    tmp_path: Path, run: RunDirectory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    path = make_private_directory(run.ledger, run.token)
    (step,) = run.ledger.open_steps()
    removed = remove_directory(step, UndoContext(run.token, clock))
    assert path.parent == Path("/tmp")
    assert removed == f"removed {path}"


def test_a_private_directory_is_private_marked_and_short(tmp_path: Path, run: RunDirectory, clock: Clock) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    path = make_private_directory(ledger, run.token, parent=tmp_path)
    assert path.stat().st_mode & 0o777 == 0o700
    assert (path / MARKER).read_text() == run.token
    assert len(path.name) == 22
    (step,) = ledger.open_steps()
    assert remove_directory(step, UndoContext(run.token, clock)) == f"removed {path}"
    assert not path.exists()


@pytest.mark.parametrize(
    ("mask", "directory", "file"),
    [
        (0o022, 0o700, 0o640),
        (0o002, 0o700, 0o660),
        (0o077, 0o700, 0o600),
        (0o000, 0o700, 0o660),
        (0o027, 0o750, 0o640),
        (0o007, 0o770, 0o660),
    ],
)
def test_runs_are_for_their_owner_unless_the_umask_lets_the_group_in(
    tmp_path: Path, mask: int, directory: int, file: int
) -> None:
    """What others may read of a file in a directory that they cannot enter does not matter; they may read none."""
    before = os.umask(mask)
    try:
        run = create_run(tmp_path / "reports", "a")
        run.ledger.record(UndoStep("a", None, "end-job", {}))
        update_run(run.path, seed=1)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "reports", run.path)]
    assert modes == [directory, directory]
    assert [stat.S_IMODE((run.path / name).stat().st_mode) for name in ("run.json", "undo.jsonl")] == [file, file]
