"""Lines of PyTorch jobs: whose rank they tell, at what time, and what a line does not tell."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.reader import LogScan, built_in_readers, read_line, read_log
from chaos.observe.logs.torch.error_file import read_error_file
from chaos.observe.logs.torch.prefix import nearest_moment

READERS = built_in_readers(timezone.utc)
CLOSED = "RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:22188. This is"
WATCHDOG = (
    "[E1003 18:37:01.833575187 ProcessGroupNCCL.cpp:621] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=6463, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800017 milliseconds"
)
SENDING = "Sending process 5005 closing signal SIGTERM"
API = "torch/distributed/elastic/multiprocessing/api.py"


def events(line: str) -> list[LogEvent]:
    return [event for event, _ in read_line(READERS, line)]


def only(line: str) -> LogEvent:
    (event,) = events(line)
    return event


@pytest.mark.parametrize(
    ("line", "kind", "rank"),
    [
        (f"[rank3]: {CLOSED}", "collective.failed", 3),
        (CLOSED, "collective.failed", None),
        (f"[default1]:[rank3]: {CLOSED}", "collective.failed", 3),
        (f"[default1]:{CLOSED}", "collective.failed", None),
        (f"[rank1]:{CLOSED}", "collective.failed", None),
        ("[rank3]: Traceback (most recent call last):", "error.traceback", 3),
        ("[rank3]: ValueError: bad batch", "error.raised", 3),
        ("[rank3]: my.module.ShapeError", "error.raised", 3),
        (f"[rank7]:{WATCHDOG}", "watchdog.timeout", 7),
        (WATCHDOG, "watchdog.timeout", None),
        ("[rank0]:[W1003 18:37:01.833575187 socket.cpp:7] [c10d] The client socket has failed to connect to "
         "[localhost]:29500 (errno: 111 - Connection refused).", "store.unreachable", None),
    ],
)  # fmt: skip
def test_a_rank_is_that_which_pytorch_itself_has_marked(line: str, kind: str, rank: int | None) -> None:
    """torchrun's ``--role rank --tee 3`` writes ``[rank1]:`` with a local rank, and no space behind it."""
    event = only(line)
    assert (event.kind, event.rank) == (kind, rank)


def test_a_rank_within_a_process_group_is_not_the_rank_of_the_job() -> None:
    event = only(f"[rank7]:{WATCHDOG}")
    assert (event.rank, event.fields["group_rank"], event.fields["operation"]) == (7, 1, "ALLREDUCE")
    assert (event.fields["timeout_ms"], event.fields["ran_ms"]) == (1_800_000, 1_800_017)


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "ValueError: bad batch",
        "[default3]:ValueError: bad batch",
        "[rank3]: at step 3",
        "[rank3]: note: see ValueError",
        '[rank3]:   File "train.py", line 3, in main',
    ],
)
def test_an_exception_that_pytorch_has_not_marked_is_no_statement_of_a_rank(line: str) -> None:
    assert events(line) == []


@pytest.mark.parametrize(
    ("line", "pid", "time"),
    [
        (f"W1128 01:23:42.048000 4862 {API}:1028] {SENDING}", 4862, "11-28 01:23:42.048000"),
        (f"W0724 20:47:35.222000 1237 venv/lib/site-packages/{API}:1012] {SENDING}", 1237, "07-24 20:47:35.222000"),
        (f"W0517 08:24:03.805000 140617718325696 {API}:826] {SENDING}", None, "05-17 08:24:03.805000"),
        (f"WARNING:torch.distributed.elastic.multiprocessing.api:{SENDING}", None, None),
    ],
)
def test_a_time_without_a_year_is_no_time_of_an_event(line: str, pid: int | None, time: str | None) -> None:
    event = only(line)
    assert (event.kind, event.wall_ns, event.pid) == ("torchrun.closing", None, pid)
    assert event.fields.get("time_text") == time


def test_the_form_of_torch_2_1_has_a_year() -> None:
    event = only(f"[2024-03-12 14:41:30,298] torch.distributed.elastic.multiprocessing.api: [WARNING] {SENDING}")
    assert event.wall_ns == int(datetime(2024, 3, 12, 14, 41, 30, 298000, timezone.utc).timestamp() * 1e6) * 1000


@pytest.mark.parametrize(
    ("text", "near", "year"),
    [
        ("11-28 01:23:42.048000", datetime(2026, 11, 28, 1, 24), 2026),
        ("12-31 23:59:59.900000", datetime(2027, 1, 1, 0, 0, 5), 2026),
        ("01-01 00:00:01.000000", datetime(2026, 12, 31, 23, 59), 2027),
        ("02-29 10:00:00.000000", datetime(2024, 3, 1), 2024),
    ],
)
def test_the_year_is_that_which_brings_a_time_nearest(text: str, near: datetime, year: int) -> None:
    near_ns = int(near.replace(tzinfo=timezone.utc).timestamp()) * 10**9
    moment = nearest_moment(text, near_ns, timezone.utc)
    expected = datetime.strptime(f"{year}-{text}", "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
    assert moment is not None
    assert datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=moment // 1000) == expected


@pytest.mark.parametrize("text", ["02-30 00:00:00.000000", "", "11-28", "13-01 00:00:00.0"])
def test_what_is_no_time_has_no_moment(text: str) -> None:
    assert nearest_moment(text, 10**18, timezone.utc) is None


def test_torchruns_line_behind_half_a_line_of_a_killed_rank_is_read_and_no_number_of_it() -> None:
    """``step 3 loss 0.5`` may have been ``0.512``."""
    line = f"step 3 loss 0.5W1128 01:23:42.048000 4862 {API}:1028] {SENDING}"
    assert [(event.kind, event.fields["worker_pid"]) for event in events(line)] == [("torchrun.closing", 5005)]
    whole = f"iter 3: loss 0.512, time W1128 01:23:42.048000 4862 {API}:1028] {SENDING}"
    assert [event.kind for event in events(whole)] == ["train.loss", "torchrun.closing"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f"E1128 01:23:42.048000 4862 {API}:7] no form fits", "torchrun.error"),
        ("[rank1]:[E1003 18:37:01.833575187 ProcessGroupNCCL.cpp:1664] no form fits", "torch.error"),
        ("[rank1]:E1003 18:37:01.833575 4711 torch/distributed/c10d_logger.py:83] no form fits", "torch.error"),
    ],
)
def test_an_error_of_unknown_form_is_an_error_of_its_program(line: str, kind: str) -> None:
    assert (only(line).kind, only(line).fields["text"]) == (kind, "no form fits")
    assert events(line.replace("E1", "W1")) == []


def error_file(**extra: Any) -> str:
    stack = 'Traceback (most recent call last):\n  File "/job/train.py", line 23, in main\n    x()\nValueError: bad\n'
    info = {"py_callstack": stack, "timestamp": "1795828981"} | extra
    return json.dumps({"message": {"message": "ValueError: bad batch\nat step 3", "extraInfo": info}})


def test_the_error_file_of_a_rank_is_read_although_it_ends_without_a_line_feed(tmp_path: Path) -> None:
    path, scan = tmp_path / "error.json", LogScan()
    path.write_text(error_file())
    (event,) = read_log(path, READERS, scan=scan)
    assert (event.kind, event.line, event.wall_ns, event.rank) == ("error.file", 1, 1_795_828_981 * 10**9, None)
    assert event.fields == {
        "error_text": "ValueError", "reason_text": "bad batch\nat step 3", "place_text": "/job/train.py:23"
    }  # fmt: skip
    assert (scan.reader, scan.lines, scan.events, scan.unknown, scan.torn) == ("torch", 1, 1, 0, False)


def test_half_an_error_file_is_torn(tmp_path: Path) -> None:
    path, scan = tmp_path / "error.json", LogScan()
    path.write_text(error_file()[:-1])
    assert list(read_log(path, READERS, scan=scan)) == []
    assert (scan.reader, scan.torn) == (None, True)


def test_other_content_of_an_error_file_is_no_event_or_has_no_time() -> None:
    stamps: tuple[object, ...] = ("later", -1, 1e300, True, "9" * 13, None, [], "\u0661")
    for stamp in stamps:
        event = read_error_file(error_file(timestamp=stamp))
        assert event is not None and event.wall_ns is None
    assert read_error_file(error_file(py_callstack=7)) is None
    assert read_error_file('{"message": {"message": ' + "[" * 100_000) is None


@given(text=st.text(max_size=200))
def test_no_text_makes_it_fail(text: str) -> None:
    for before in (
        "",
        '{"message": {"message": ',
        "[rank1]: ",
        "[rank1]:[E1003 18:37:01.833575187 a.cpp:6] ",
        "{'loss': ",
    ):
        for event, _ in read_line(READERS, before + text):
            assert isinstance(event, LogEvent)
