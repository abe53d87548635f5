"""What MindIO TFT reads from the environment, the stand-in reads too: limits in the vendor's profile, and its log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.base.growth import in_words
from chaos.observe.logs.reader import built_in_readers, read_log
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.timings import PROFILES, timings_of

NAMES = ("TTP_NORMAL_ACTION_TIME_LIMIT", "TTP_RETRY_TIMES", "MINDIO_WAIT_MINDX_TIME")


def kinds_in(file: Path) -> list[str]:
    return [event.kind for event in read_log(file, built_in_readers())]


@pytest.mark.parametrize(
    ("environment", "action", "connect", "answer"),
    [
        ({}, 180.0, 75.0, 30.0),
        ({"TTP_NORMAL_ACTION_TIME_LIMIT": "30"}, 30.0, 75.0, 30.0),
        ({"TTP_NORMAL_ACTION_TIME_LIMIT": "29"}, 180.0, 75.0, 30.0),  # out of its range: as if not set
        ({"TTP_NORMAL_ACTION_TIME_LIMIT": "1801"}, 180.0, 75.0, 30.0),
        ({"TTP_RETRY_TIMES": "1"}, 180.0, 1.0, 30.0),
        ({"TTP_RETRY_TIMES": "5"}, 180.0, 25.0, 30.0),
        ({"TTP_RETRY_TIMES": "0"}, 180.0, 75.0, 30.0),
        ({"MINDIO_WAIT_MINDX_TIME": "3600"}, 180.0, 75.0, 3600.0),
        ({"MINDIO_WAIT_MINDX_TIME": "ten"}, 180.0, 75.0, 30.0),
    ],
)
def test_the_vendors_limits_are_told_by_the_environment(
    environment: Mapping[str, str], action: float, connect: float, answer: float
) -> None:
    limits = timings_of("vendor", environment)
    assert (limits.action, limits.connect, limits.reconnect, limits.agent_answer) == (action, connect, connect, answer)


def test_the_fast_profile_keeps_its_own() -> None:
    assert timings_of("fast", dict.fromkeys(NAMES, "100")) == PROFILES["fast"]


def test_the_limits_of_the_fast_profile_grow_with_the_ranks_and_say_how() -> None:
    few, many = timings_of("fast", {}, 16), timings_of("fast", {}, 128)
    assert few == PROFILES["fast"]
    assert in_words(many.connect) == "284 s (60 s, and 2 s for each of the 112 ranks beyond 16)"
    assert all(getattr(many, limit) > getattr(few, limit) for limit in ("lost_after", "pre_lock", "action"))


def test_the_ranks_of_a_large_job_are_heard_seldom_enough_for_one_process() -> None:
    most = max(ranks / timings_of("fast", {}, ranks).heartbeat for ranks in (4, 16, 128, 1024, 8192))
    assert most < 250  # heartbeats a second


def test_the_vendors_limits_do_not_grow() -> None:
    assert timings_of("vendor", {}, 8192) == PROFILES["vendor"]


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "ttp_log.log.{pid}"),
        ({"TTP_LOG_MODE": "PER_PROC"}, "ttp_log.log.{pid}"),
        ({"TTP_LOG_MODE": "ONLY_ONE"}, "ttp_log.log"),
    ],
)
def test_the_logs_file_is_named_by_its_mode(tmp_path: Path, environment: Mapping[str, str], name: str) -> None:
    name = name.format(pid=os.getpid())
    TtpLog(str(tmp_path), environment).info("TTP controller.cpp:1", "nextState: STATE_OP_DUMP")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert kinds_in(tmp_path / name) == ["ttp.state"]


@pytest.mark.parametrize(
    ("level", "kinds"), [("INFO", ["ttp.state", "ttp.state"]), ("WARNING", ["ttp.state"]), ("ERROR", []), ("?", None)]
)
def test_lines_below_the_level_are_not_written(tmp_path: Path, level: str, kinds: list[str] | None) -> None:
    log = TtpLog(str(tmp_path), {"TTP_LOG_LEVEL": level})
    log.info("TTP controller.cpp:1", "nextState: STATE_OP_DUMP")
    log.warning("TTP controller.cpp:1", "nextState: STATE_OP_EXIT")
    file = tmp_path / f"ttp_log.log.{os.getpid()}"
    wanted = ["ttp.state", "ttp.state"] if kinds is None else kinds
    assert kinds_in(file) == wanted


def test_on_standard_output_its_lines_are_those_of_a_workers_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    TtpLog(str(tmp_path / "none"), {"TTP_LOG_STDOUT": "1"}).info("TTP controller.cpp:1", "nextState: STATE_OP_DUMP")
    assert not (tmp_path / "none").exists()
    (tmp_path / "worker_0.log").write_text(capfd.readouterr().out)
    assert kinds_in(tmp_path / "worker_0.log") == ["ttp.state"]
