"""The calls of the traceback at the end of a log, with the line of its exception."""

from __future__ import annotations

from pathlib import Path

from chaos.observe.logs.traceback_calls import traceback_at_end
from chaos.observe.stacks import Frame

HEAD = "step 1, loss 0.5\n"
FIRST = """Traceback (most recent call last):
  File "/job/jobs/train.py", line 60, in <module>
    main()
    ~~~~^^
  File "/job/jobs/train.py", line 41, in step
    raise ValueError("bad weights")
ValueError: bad weights
"""
SECOND = """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/jobs/train.py", line 71, in report
    raise own.ReportError("cannot say")
own.ReportError: cannot say
"""
CALLS = (Frame("/job/jobs/train.py", 41, "step"), Frame("/job/jobs/train.py", 60, "<module>"))


def log(directory: Path, text: str) -> Path:
    path = directory / "worker_1.log"
    path.write_text(text, "utf-8")
    return path


def test_the_last_call_comes_first_and_the_exception_has_its_line(tmp_path: Path) -> None:
    found = traceback_at_end(log(tmp_path, HEAD * 3 + FIRST))
    assert found is not None
    assert (found.frames, found.line, found.error) == (CALLS, 10, "ValueError: bad weights")


def test_in_a_chain_the_first_exception_shows_where(tmp_path: Path) -> None:
    found = traceback_at_end(log(tmp_path, HEAD + FIRST + SECOND))
    assert found is not None
    assert (found.frames, found.line, found.error) == (CALLS, 8, "own.ReportError: cannot say")


def test_of_two_tracebacks_apart_the_last_counts(tmp_path: Path) -> None:
    found = traceback_at_end(log(tmp_path, FIRST + HEAD + FIRST.replace("41", "42")))
    assert found is not None
    assert found.frames[0].line == 42


def test_lines_of_a_long_log_are_counted_from_its_beginning(tmp_path: Path) -> None:
    found = traceback_at_end(log(tmp_path, HEAD * 40_000 + FIRST))
    assert found is not None
    assert found.line == 40_007


def test_a_log_without_a_traceback_or_with_half_of_one_has_none(tmp_path: Path) -> None:
    assert traceback_at_end(log(tmp_path, HEAD)) is None
    assert traceback_at_end(log(tmp_path, FIRST[:-25])) is None
    assert traceback_at_end(log(tmp_path, "")) is None


def test_a_launcher_s_prefix_is_no_part_of_a_line(tmp_path: Path) -> None:
    found = traceback_at_end(log(tmp_path, "".join(f"[rank1]: {line}\n" for line in FIRST.splitlines())))
    assert found is not None
    assert found.frames == CALLS
