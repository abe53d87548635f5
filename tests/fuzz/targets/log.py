"""Logs of the framework, of msrun and of the SDK. Documented: nothing is raised for what a log holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone
from pathlib import Path
from random import Random

from chaos.observe.logs.reader import LogScan, built_in_readers, read_log
from tests.fuzz.mutate import WORDS, mutate_log
from tests.fuzz.target import Target

_WORDS = (
    *WORDS,
    *(b"rank:", b"rank:0", b"step: ", b"step:5", b"loss is ", b"loss is nan,", b"[0, 1]", b"[" * 50, b"{0: 1}"),
    *(b"9999-99-99", b"2026-02-30", b"0000-00-00", b"25:61:61", b"23:59:60", b"0001-01-01", b"9999-12-31"),
)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Lines of all logs, mixed, with exchanged words."""
    return mutate_log(random, corpus, _WORDS)


def check(content: bytes, folder: Path) -> None:
    """Read it with every reader."""
    path = folder / "ttp_log.log.1"
    path.write_bytes(content)
    scan = LogScan()
    events = list(read_log(path, built_in_readers(timezone.utc), scan=scan))
    assert len(events) == scan.events
    assert len({event.line for event in events}) + scan.unknown <= scan.lines
    assert scan.lines == content.count(b"\n")
    for event in events:
        assert event.rank is None or event.rank >= 0
        assert event.line <= scan.lines


TARGET = Target("log", mutate, check)
