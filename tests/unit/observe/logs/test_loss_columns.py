"""The fast way through a log finds what the slow one finds, whatever is in the log."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from datetime import timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.observe.logs.lines import LINE_LIMIT
from chaos.observe.logs.losses import loss_columns
from chaos.observe.logs.losses.loss_columns import FAR, NO_TIME, LossColumns, LossScanner
from chaos.observe.logs.mindformers_log import STEP, MindFormersLogReader
from chaos.observe.logs.reader import LogScan, read_log
from tests.kit.examples import examples

SIGN = "TREError"
RESUMED = b"[WARNING] ME(5903:1,M):2026-11-21-06:03:20.673.000 [m.py:1] Resume training after TREError from step 4"

_PREFIXES = (
    "{at} - [mindformers/core/callback/callback.py:529] - INFO - ",
    "{at} - /工作/log[mindformers/core/callback/callback.py:747] - INFO - ",
    "[INFO] {at} [callback.py:334] print_output_info: ",
    "{at} - \udcff[callback.py:3] - INFO - ",
    "",
)
_MESSAGES = (
    "{{ Epoch:[{epoch:3d}/  9], step:[{step:5d}/{steps:5d}], loss: {loss}, per_step_time: {ms}ms, lr: 1e-05",
    "{{ Epoch:[{epoch:3d}/  9], step:[{step:5d}/{steps:5d}], loss:[{loss:>5}/{loss:>5}], per_step_time: {ms}ms",
    "{{ step:[{step:5d}/{steps:5d}], consumed_samples: {ms}, global_batch_size: 8, loss:  {loss}, per_step: 1ms }}",
    "   {ms}.2% |████      | 31.57 samples/s/p  0:00:01 }}",
)
_LOSSES = st.one_of(
    st.sampled_from(
        ["nan", "inf", "-inf", "N/A", "N/A (non-last PP stage)", "1e-05", "1.5x", "", "1_0.5", "\u0663.\u0665"]
    ),
    st.decimals(-100, 100, places=3).map(str),
    st.decimals(0, 20, places=6).map(str),
    st.decimals(0, 999_999_999, places=9).map(str),
    st.integers(0, 1000).map(str),
    st.floats(1e9, 1e300).map(lambda loss: f"{loss:.6f}"),
)
_NUMBERS = st.one_of(st.integers(1, 12), st.integers(0, 10**6), st.integers(0, 10**10))


@st.composite
def _training_lines(draw: st.DrawFn) -> bytes:
    day = draw(st.sampled_from(["2026-11-21", "2026-11-20", "2026-13-41", "0000-00-00"]))
    at = f"{day} {draw(st.integers(0, 25)):02d}:{draw(st.integers(0, 61)):02d}:{draw(st.integers(0, 61)):02d},042"
    text = draw(st.sampled_from(_PREFIXES)).format(at=at) + draw(st.sampled_from(_MESSAGES)).format(
        epoch=draw(st.integers(0, 3)),
        step=draw(_NUMBERS),
        steps=draw(st.sampled_from([8, 10_000, 10**9])),
        loss=draw(_LOSSES),
        ms=draw(st.integers(0, 99)),
    )
    return text.encode("utf-8", "surrogateescape")


@st.composite
def _alike(draw: st.DrawFn) -> list[bytes]:
    """Lines that differ from one in digits or in single bytes: some have its shape, some only nearly."""
    base = draw(_training_lines())
    numbers = draw(st.randoms(use_true_random=False))
    lines = [base]
    for _ in range(draw(st.integers(1, 30))):
        line = bytearray(numbers.choice(b"0123456789") if 0x30 <= byte <= 0x39 else byte for byte in base)
        if line and numbers.random() < 0.5:
            line[numbers.randrange(len(line))] = numbers.choice(b":;?/@p0. ,-\0\r\xff\xbb\xb5\x0a"[:-1])
        if numbers.random() < 0.1:
            at = numbers.randrange(len(line) + 1)
            line[at : at + numbers.randrange(9)] = numbers.choice([b"", b"\xff", b"TREError", b"7"])
        lines.append(bytes(line))
    return lines


@st.composite
def _torn(draw: st.DrawFn) -> bytes:
    """What a writer that was killed leaves, and behind it what the next one writes."""
    line, others = draw(_training_lines()), st.one_of(_training_lines(), st.just(RESUMED))
    return line[: draw(st.integers(0, len(line)))] + draw(others)


_OTHERS = st.one_of(
    _training_lines(),
    _torn(),
    st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")),
    st.sampled_from([b"", b"Traceback (most recent call last):", b"RuntimeError: TREError occurred", b"x" * 300]),
    st.tuples(_training_lines(), st.integers(200, 1200)).map(lambda parts: parts[0] + b"." * parts[1]),
)
_LINES = st.lists(st.one_of(_alike(), _alike(), st.lists(_OTHERS, min_size=1, max_size=2)), max_size=8).map(
    lambda groups: [line for group in groups for line in group]
)


def slowly(path: Path, limit: int) -> tuple[list[tuple[object, ...]], LogScan]:
    scan = LogScan()
    events = read_log(path, [MindFormersLogReader(timezone.utc)], scan=scan, line_limit=limit)
    steps = [event for event in events if event.kind == STEP]
    return [
        (event.line, event.step, event.fields["loss"], event.fields["places"], near(event.wall_ns)) for event in steps
    ], scan


def near(wall_ns: int | None) -> int | None:
    return None if wall_ns is None or abs(wall_ns) >= FAR else wall_ns


def rows(found: LossColumns) -> list[tuple[object, ...]]:
    return [
        (line, step, loss if present else None, places, None if wall == NO_TIME else wall)
        for line, step, loss, places, present, wall in zip(
            found.line.tolist(),
            found.step.tolist(),
            found.loss.tolist(),
            found.places.tolist(),
            found.present.tolist(),
            found.wall.tolist(),
            strict=True,
        )
    ]


def agree(path: Path, scanner: LossScanner, limit: int) -> None:
    found = scanner.scan(path)
    expected, scan = slowly(path, limit)
    assert repr(rows(found)) == repr(expected)
    assert (found.lines, found.torn) == (scan.lines, scan.torn)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pieces and lines so short that every line meets their ends."""
    monkeypatch.setattr(loss_columns, "PIECE", 700)
    monkeypatch.setattr(loss_columns, "LINE_LIMIT", 500)
    return 500


@examples(20)
@given(
    lines=_LINES,
    copies=st.integers(1, 4),
    end=st.sampled_from([b"\n", b"\r\n"]),
    cut=st.integers(0, 30),
)
def test_both_ways_find_the_same(
    tmp_path: Path, small_pieces: int, lines: list[bytes], copies: int, end: bytes, cut: int
) -> None:
    content = b"".join(line + end for line in lines) * copies
    path = tmp_path / "worker_0.log"
    path.write_bytes(content[: len(content) - cut])
    agree(path, LossScanner(), small_pieces)


def write_log(path: Path, losses: Callable[[float], str], count: int, between: bytes = b"") -> None:
    with path.open("wb") as file:
        for step in range(1, count + 1):
            message = _MESSAGES[0].format(epoch=1, step=step, steps=count, loss=losses(step), ms=step % 1000)
            at = f"2026-11-21 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d},{step % 1000:03d}"
            file.write((_PREFIXES[0].format(at=at) + message + "\n").encode() + between)


def test_what_was_learnt_of_one_log_serves_the_next(tmp_path: Path) -> None:
    scanner = LossScanner()
    for number in range(3):
        path = tmp_path / f"worker_{number}.log"
        write_log(path, "{:.3f}".format if number != 1 else "{:.4f}".format, 3000)
        agree(path, scanner, LINE_LIMIT)


def test_lines_that_were_asked_for_are_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    write_log(path, str, 3, between=b"Resume training after TREError from step 2.\nother\n")
    found = LossScanner(others=(SIGN,)).scan(path)
    assert found.others == tuple((line, "Resume training after TREError from step 2.") for line in (2, 5, 8))
    assert found.step.tolist() == [1, 2, 3]


def test_a_long_line_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    write_log(path, str, 2)
    good = path.read_bytes()
    with path.open("wb") as file:
        file.write(good)
        for _ in range(20):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + good)
    tracemalloc.start()
    try:
        found = LossScanner().scan(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.line.tolist() == [1, 2, 4, 5]
    assert peak < 4 << 20


def test_an_empty_log_has_empty_columns(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_bytes(b"")
    found = LossScanner().scan(path)
    assert (len(found.step), found.lines, found.torn) == (0, 0, False)
    assert found.step.dtype == np.int64


def test_without_times_the_rest_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    write_log(path, lambda step: "nan" if step == 7 else "1.250", 10)
    with_times, without = LossScanner().scan(path), LossScanner(times=False).scan(path)
    assert with_times.step.tolist() == without.step.tolist()
    assert math.isnan(without.loss[6])
    assert set(without.wall.tolist()) == {NO_TIME}
    assert NO_TIME not in with_times.wall.tolist()
