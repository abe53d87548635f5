"""Losses in logs of MindFormers, read the fast way. Documented: it finds what the reader of lines finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.observe.logs.lines import LINE_LIMIT
from chaos.observe.logs.losses.loss_columns import LossScanner
from tests.fuzz.mutate import WORDS, mutate_log
from tests.fuzz.target import Target
from tests.unit.observe.logs.test_loss_columns import agree

_WORDS = (
    *WORDS,
    *(b"step:[", b"loss:", b"loss: nan,", b"Epoch:[", b"/", b"1e-05", b"1.5.5", b"-0.000", b"0" * 30, b"step:[0/0],"),
    *(b"2026-11-21", b"25:61:61,042", b"|####      |", b"12/12],", b"\xd9\xa3"),
)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Lines and words of training logs more often than bytes."""
    return mutate_log(random, corpus, _WORDS)


def check(content: bytes, folder: Path) -> None:
    """Both ways must find the same."""
    path = folder / "worker_0.log"
    path.write_bytes(content)
    agree(path, LossScanner(), LINE_LIMIT)


TARGET = Target("loss_columns", mutate, check)
