"""Every line of level ERROR or above is an event of its program, and a lower level is none, whatever its words are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone
from pathlib import Path

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log
from chaos.observe.logs.tail import LogTail

READERS = built_in_readers(timezone.utc)
TTP = "2026-03-24 15:19:01.000000 4711 {} [4711][TTP controller.cpp:1] "
ME = "[{}] ME(7:1,MainProcess):2026-11-21-01:30:06.042.000 [mindspore/a.py:9] "
MINDFORMERS = "2026-11-21 01:28:53,952 - mindformers/log[mindformers/a.py:7] - {} - "
CANN = "[{}] GE(7,python):2026-11-21-01:30:06.042.000 [a.cc:9][7]"
AGENT = "[{}]     2026/11/21 07:38:56.551173 12      manager/manager.go:665    "


def read(folder: Path, *lines: str, name: str = "worker_3.log") -> tuple[list[LogEvent], LogScan]:
    path, scan = folder / name, LogScan()
    path.write_text("".join(f"{line}\n" for line in lines))
    return list(read_log(path, READERS, scan=scan)), scan


@pytest.mark.parametrize(
    ("prefix", "level", "kind", "place"),
    [
        (ME, "ERROR", "mindspore.error", "mindspore/a.py:9"),
        (ME, "CRITICAL", "mindspore.error", "mindspore/a.py:9"),
        (MINDFORMERS, "ERROR", "mindformers.error", "mindformers/a.py:7"),
        (CANN, "ERROR", "device.error", "a.cc:9"),
        (AGENT, "ERROR", "taskd.error", "manager/manager.go:665"),
    ],
)
def test_a_line_of_level_error_that_no_form_fits_is_an_event_of_its_program(
    tmp_path: Path, prefix: str, level: str, kind: str, place: str
) -> None:
    ((event,), scan) = read(tmp_path, prefix.format(level) + "the moon is down")
    assert (event.kind, event.fields["level"], scan.unknown) == (kind, level.upper(), 0)
    assert event.fields["place_text"] == place
    assert str(event.fields["text"]).endswith("the moon is down")
    assert event.wall_ns is not None


@pytest.mark.parametrize(
    "line",
    [
        "ERROR:root:the moon is down",
        "[ERROR] the moon is down",
        "ERROR: the moon is down",
        "2026-11-21 01:28:53,952 - launcher - ERROR - the moon is down",
        "[2026-11-21 01:28:53,952] [ERROR] [launch.py:3] the moon is down",
        "2026-11-21 01:28:53.952 | CRITICAL | a:main:3 - the moon is down",
        "2026/11/21 01:28:53 ERROR the moon is down",
        "E1125 21:12:06.123456    4711 launch.cc:12] the moon is down",
        "[rank1]: ERROR:root:the moon is down",
    ],
)
def test_an_error_of_another_program_is_known_by_the_form_of_its_logger(tmp_path: Path, line: str) -> None:
    ((event,), _) = read(tmp_path, line)
    assert event.kind == "other.error"
    assert str(event.fields["text"]).endswith("the moon is down")


@pytest.mark.parametrize(
    "line",
    [
        ME.format("WARNING") + "ERROR the moon is down",
        MINDFORMERS.format("INFO") + "- ERROR - the moon is down",
        CANN.format("EVENT") + "ERROR",
        TTP.format("warn") + "an error is not far",
        AGENT.format("WARN") + "ERROR",
        "2026-11-21 01:28:53,952 - launcher - INFO - no ERROR here",
        "ERRORS are not far",
        "no ERROR: here",
        "Errors: 0",
        "    raise ValueError('ERROR: the moon')",
    ],
)
def test_the_words_of_a_lower_level_are_no_error(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, line)[0] == []


def test_a_form_that_is_known_stays_what_it_is(tmp_path: Path) -> None:
    ((event,), _) = read(tmp_path, ME.format("ERROR") + "Launch kernel failed: Default/AllReduce-op2")
    assert event.kind == "collective.failed"


def test_an_error_of_a_rank_has_the_rank_of_its_log(tmp_path: Path) -> None:
    ((event,), _) = read(tmp_path, ME.format("ERROR") + "the moon is down")
    assert event.rank == 3
    ((event,), _) = read(tmp_path, ME.format("ERROR") + "the moon is down", name="scheduler.log")
    assert event.rank is None


def test_both_records_of_a_line_are_read(tmp_path: Path) -> None:
    (events, _) = read(tmp_path, f"epoch: 1 step: 1, loss is 0.5{ME.format('ERROR')}the moon is down")
    assert [event.kind for event in events] == ["train.loss", "mindspore.error"]


def test_a_reader_of_another_package_is_asked_before(tmp_path: Path) -> None:
    class Mine(LogReader):
        name = "mine"

        def recognises(self, first_lines: Sequence[str]) -> bool:
            return False

        def read(self, line: str) -> LogEvent | None:
            return LogEvent("mine.moon") if "moon" in line else None

    path = tmp_path / "a.log"
    path.write_text("ERROR: the moon is down\nERROR: the sun is up\n")
    assert [event.kind for event in read_log(path, [*READERS, Mine()])] == ["mine.moon", "other.error"]
    tail = LogTail(path.open("rb"), [*READERS, Mine()], name="a")
    assert [event.kind for event in tail.new_events()] == ["mine.moon", "other.error"]
    tail.close()
