"""A run that has not passed shows what its logs said first: bounded, with rank, file and line."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from chaos.evidence import first_errors as module
from chaos.evidence.first_errors import MOST, FirstError, first_errors
from chaos.report.analyze import analyze
from chaos.report.result_file import read_result
from chaos.report.terminal import print_result
from tests.kit.runs.good_run import good_run

ME = "[ERROR] ME(7:1,MainProcess):2026-11-21-01:30:{:02}.042.000 [mindspore/a.py:9] "
TTP = "2026-11-21 01:30:{:02}.000000 4711 error [4711][TTP controller.cpp:1] "


def write(run_dir: Path, name: str, *lines: str, attempt: str = "train") -> None:
    path = run_dir / "logs" / attempt / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def test_errors_are_told_by_their_time_with_rank_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "worker_0.log", "epoch: 1 step: 1, loss is 0.5", ME.format(9) + "late")
    write(tmp_path, "worker_2.log", ME.format(3) + "first")
    write(tmp_path, "ttp/ttp_log.log.4711", TTP.format(5) + "rank:1 do prelock timeout")
    assert [(error.rank, error.file, error.line) for error in first_errors(tmp_path)] == [
        (2, "logs/train/worker_2.log", 1),
        (1, "logs/train/ttp/ttp_log.log.4711", 1),
        (0, "logs/train/worker_0.log", 2),
    ]


def test_the_end_of_a_traceback_is_an_error_and_its_source_lines_are_none(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker_1.log",
        "Traceback (most recent call last):",
        "    raise ValueError('no')",
        "ValueError: no",
        "an Error is not far",
    )
    assert first_errors(tmp_path) == (FirstError("train", 1, "logs/train/worker_1.log", 3, "ValueError: no"),)


def test_an_error_of_pytorch_itself_is_one(tmp_path: Path) -> None:
    watchdog = (
        "[E1003 18:37:01.833575187 ProcessGroupNCCL.cpp:621] [Rank 1] Watchdog caught collective operation timeout"
    )
    write(tmp_path, "worker_1.log", "step 1 loss 0.5", f"[rank1]:{watchdog}", f"[rank1]:{watchdog.replace('[E', '[W')}")
    assert first_errors(tmp_path) == (FirstError("train", 1, "logs/train/worker_1.log", 2, watchdog),)


def test_what_many_logs_say_is_told_once(tmp_path: Path) -> None:
    for rank in range(5):
        write(tmp_path, f"worker_{rank}.log", f"RuntimeError: rank {rank} lost its peer")
    (error,) = first_errors(tmp_path)
    assert (error.rank, error.alike) == (0, 4)


def test_they_are_few_and_those_of_the_first_launch_come_first(tmp_path: Path) -> None:
    words = ["alpha", "beta", "gamma", "delta"]
    write(tmp_path, "worker_0.log", *[f"RuntimeError: {word}" for word in words], attempt="resume")
    for rank, name in enumerate("abcd"):
        write(tmp_path, f"worker_{rank}.log", *[f"RuntimeError: {name} {word}" for word in words])
    errors = first_errors(tmp_path)
    assert len(errors) == MOST
    assert {error.attempt for error in errors} == {"train"}
    assert [error.text for error in errors if error.rank == 0] == [f"RuntimeError: a {word}" for word in words[:3]]


def test_only_the_beginning_of_a_log_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 100)
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    write(tmp_path, "worker_0.log", *["x" * 50] * 100, "RuntimeError: too late")
    write(tmp_path, "worker_1.log", "RuntimeError: in time")
    assert [error.rank for error in first_errors(tmp_path)] == [1]
    monkeypatch.setattr(module, "MOST_BYTES_IN_ALL", 500)
    assert first_errors(tmp_path) == ()


@pytest.mark.parametrize(("limit", "ranks"), [("MOST_LOGS", [0]), ("MOST_LINES", [0])])
def test_no_more_logs_and_lines_are_looked_at_than_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, ranks: list[int]
) -> None:
    write(tmp_path, "worker_0.log", "RuntimeError: alpha", *["no Error"] * 10)
    write(tmp_path, "worker_1.log", "RuntimeError: beta")
    assert [error.rank for error in first_errors(tmp_path)] == [0, 1]
    monkeypatch.setattr(module, limit, {"MOST_LOGS": 1, "MOST_LINES": 5}[limit])
    assert [error.rank for error in first_errors(tmp_path)] == ranks


def test_links_pipes_and_what_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    assert first_errors(tmp_path) == ()
    write(tmp_path, "worker_0.log", "RuntimeError: a")
    (tmp_path / "logs" / "train" / "worker_1.log").symlink_to("worker_0.log")
    os.mkfifo(tmp_path / "logs" / "train" / "worker_2.log")
    (tmp_path / "logs" / "linked").symlink_to("train")
    assert [error.file for error in first_errors(tmp_path)] == ["logs/train/worker_0.log"]


def test_a_run_that_fails_shows_them_and_one_that_passes_does_not(tmp_path: Path) -> None:
    shown = {}
    for verdict in ("pass", "fail"):
        run, run_dir = good_run(), tmp_path / verdict
        if verdict == "fail":
            del run.saved[1]
        run.write(run_dir)
        with (run_dir / "logs" / "train" / "worker_3.log").open("a") as log:
            log.write("\nRuntimeError: [bold]the moon\x1b[2J\n")
        out = io.StringIO()
        print_result(analyze(run_dir), Console(file=out, width=200))
        shown[verdict] = out.getvalue()
        assert read_result(run_dir).verdict == verdict
    assert "first errors" not in shown["pass"]
    assert "first errors in the logs:" in shown["fail"]
    (line,) = [text for text in shown["fail"].splitlines() if "the moon" in text]
    assert line.startswith("  rank 3, logs/train/worker_3.log:")
    assert line.endswith(": RuntimeError: [bold]the moon")
