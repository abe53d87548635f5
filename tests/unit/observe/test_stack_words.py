"""Stacks that faulthandler has written, and what a reader is shown of them."""

from __future__ import annotations

import faulthandler
import threading
from pathlib import Path

import pytest

from chaos.observe.stack_words import apart, first_stack, in_words, odd_ranks, stacks_of
from chaos.observe.stacks import Frame, main_stack, threads_of
from chaos.report.causes import kind_of

DUMP = b"""Thread 0x00007f1200000001 [worker] (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/job/data.py", line 9 in load

Current thread 0x00007f1200000000 (most recent call first):
  File "/job/venv/lib/python3.11/site-packages/mindspore/ops/primitive.py", line 311 in __call__
  File "/job/jobs/train.py", line 41 in exchange
  File "/job/jobs/train.py", line 60 in <module>
"""
MAIN = 0x00007F1200000000

LIBRARY = ["/job/venv/lib/python3.11/site-packages/mindspore/ops/primitive.py", 311, "__call__"]
EXCHANGE, TOP = ["/job/jobs/train.py", 41, "exchange"], ["/job/jobs/train.py", 60, "<module>"]


def taken(*stacks: tuple[list[int], list[list[object]]], without: list[object] | None = None) -> dict[str, object]:
    entries = [
        {"ranks": ranks, "files": [f"stacks-rank_{ranks[0]}-1.txt"], "frames": frames} for ranks, frames in stacks
    ]
    return {"stacks": entries, "without": without or []}


def test_the_main_thread_is_found_by_its_number(tmp_path: Path) -> None:
    worker, main = threads_of(DUMP)
    assert (worker.frames[1], worker.at, main.at) == (Frame("/job/data.py", 9, "load"), 1, 5)
    assert main_stack(DUMP, MAIN) == main
    assert main_stack(DUMP, 0x00007F1200000001) == worker


def test_what_this_python_writes_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    with path.open("wb") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    stack = main_stack(path.read_bytes(), threading.main_thread().ident)
    assert stack is not None
    assert stack.frames[0].function == "test_what_this_python_writes_is_understood"
    assert stack.frames[0].file == __file__


@pytest.mark.parametrize("content", [b"", DUMP[:-5], DUMP[: DUMP.index(b"Current")], b"\0" * 99 + b"\n"])
def test_a_dump_that_is_not_whole_has_no_stack(content: bytes) -> None:
    assert main_stack(content, MAIN) is None


def test_of_two_dumps_in_a_file_the_last_counts() -> None:
    later = DUMP.replace(b"line 41", b"line 42")
    stack = main_stack(DUMP + later, MAIN)
    assert stack is not None
    assert stack.frames[1].line == 42


def test_a_stack_is_shown_by_its_last_call_and_the_last_calls_of_the_job() -> None:
    stacks, without = stacks_of(taken(([1], [LIBRARY, LIBRARY, EXCHANGE, TOP])))
    assert in_words(stacks, without) == (
        "; stacks: rank 1: mindspore/ops/primitive.py:311 in __call__ < … < jobs/train.py:41 in exchange"
        " < jobs/train.py:60 in <module>"
    )


def test_a_rank_without_a_stack_is_named_with_the_reason() -> None:
    stacks, without = stacks_of(taken(([0], [TOP]), without=[{"ranks": [1, 2], "why": "its process is stopped"}]))
    assert in_words(stacks, without).endswith(" | ranks 1-2: no stack, its process is stopped")


def test_the_ranks_that_differ_from_most_are_named() -> None:
    one, other, third = ([[*EXCHANGE[:1], line, "f"]] for line in (1, 2, 3))
    assert odd_ranks(stacks_of(taken(([2], one), ([0, 1, 3], other)))[0]) == (2,)
    assert odd_ranks(stacks_of(taken(([0], one), ([1], other)))[0]) == ()
    assert odd_ranks(stacks_of(taken(([0, 1, 2], one)))[0]) == ()
    behind = taken(([1], one), ([0], other))
    for entry, step in zip(behind["stacks"], (6, 7), strict=True):  # type: ignore[call-overload]
        entry["step"] = step
    assert odd_ranks(stacks_of(behind)[0]) == (1,)
    assert odd_ranks(stacks_of(taken(([2], one), ([4], third), ([0, 1, 3], other)))[0]) == (2, 4)


def test_a_headline_has_the_first_stack_and_its_id_none() -> None:
    stacks, without = stacks_of(taken(([1], [EXCHANGE]), ([0], [TOP])))
    text = "it ran out: ranks 0-1: step 3" + in_words(stacks, without)
    assert first_stack(text) == "it ran out: ranks 0-1: step 3; rank 1: jobs/train.py:41 in exchange"
    assert apart(text)[1] == ["rank 1: jobs/train.py:41 in exchange", "rank 0: jobs/train.py:60 in <module>"]
    assert kind_of(text) == kind_of("it ran out: ranks 0-1: step 4")


def test_many_different_stacks_are_counted() -> None:
    stacks, without = stacks_of(taken(*(([rank], [["/a/b.py", rank, "f"]]) for rank in range(9))))
    assert in_words(stacks, without).endswith(" | 6 other stacks")


@pytest.mark.parametrize("data", [{}, {"stacks": 1, "without": "x"}, {"stacks": [{"ranks": 1}], "without": [3]}])
def test_a_record_that_is_not_the_harness_s_says_nothing(data: dict[str, object]) -> None:
    assert in_words(*stacks_of(data)) == ""
