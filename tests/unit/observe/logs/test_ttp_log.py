"""The lines of MindIO TFT that matter become events. The files in data/ are excerpts of real logs of four ranks."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.reader import LogScan, read_log
from chaos.observe.logs.ttp.log import TtpLogReader

UTC = timezone.utc
FILE = "2026-11-21 01:32:19.903248 30710 warning [30710][TTP controller.cpp:2518] "
DOCUMENT = "2026-11-21 01:32:19.903248 info 30710 [TTP controller.cpp:1512] "
PYTHON = "2026-11-21 01:32:19.903248 30717 info [30717][47712][PYH ttp_decorator.py:505] "
LINK = "2026-11-21 01:32:19.903248 30701 info [30701][ACC acc_tcp_link_complex_default.h:370] "


def read(line: str) -> LogEvent:
    event = TtpLogReader(UTC).read(line)
    assert event is not None, line
    return event


@pytest.mark.parametrize("prefix", [FILE, DOCUMENT, FILE.replace("[30710]", ""), FILE.replace("warning", "info")])
def test_every_form_of_the_prefix_is_read(prefix: str) -> None:
    event = read(prefix + "rank:2, report group list: [0, 2]")
    assert (event.kind, event.rank, event.fields) == ("ttp.registered", 2, {"group": [0, 2], "thread": 30710})
    assert event.wall_ns == 1_795_224_739_903_248_000


@pytest.mark.parametrize(
    ("line", "kind", "rank", "step", "fields"),
    [
        (
            FILE + "status error, rank:2 step: 8 npu_status: 0 run_status: 0 data_aval: 1 data_status: 0 "
            "diff_time : 8004",
            "ttp.status_error",
            2,
            8,
            {"npu_status": 0, "run_status": 0, "data_aval": 1, "data_status": 0, "diff_ms": 8004},
        ),
        (FILE + "selected error ranks: [2], step: 10", "ttp.errors_selected", None, 10, {"ranks": [2]}),
        (FILE + "selected error ranks: [1, 2], step: -1", "ttp.errors_selected", None, None, {"ranks": [1, 2]}),
        (FILE + "nextState: STATE_OP_DUMP", "ttp.state", None, None, {"state": "DUMP"}),
        (FILE + "nextState: STATE_OP_ENV_CLEAR", "ttp.state", None, None, {"state": "ENV_CLEAR"}),
        (
            PYTHON + "rank:0 set dump config step:10, repairId:1, optimidxs:[0], ranks:[[0]]",
            "ttp.dump_config",
            0,
            10,
            {"repair_id": 1, "optimizers": [0], "ranks": [[0]]},
        ),
        (PYTHON + "rank:0 begin to execute save checkpoint", "ttp.dump_begin", 0, None, {}),
        (
            FILE + "rank:0 reply dump result success, dump ret:0",
            "ttp.dump_result",
            0,
            None,
            {"reply": "success", "ret": 0},
        ),
        (FILE + "finish rename, rank:1", "ttp.renamed", 1, None, {}),
        (FILE + "DumpCallback return TTP_OK", "ttp.dump_done", None, None, {"result": "TTP_OK"}),
        (
            FILE + "dp:[1, 3] has no complete data. ret:1",
            "ttp.dump_refused",
            None,
            None,
            {"dp": [1, 3], "ret": 1},
        ),
        (FILE + "dp:[1 3] has no complete data. ret:", "ttp.dump_refused", None, None, {"dp": "[1 3]"}),
        (FILE + "start notify all device stop...", "ttp.stop_begin", None, None, {}),
        (FILE + "notify all device stop & clean ok!", "ttp.env_cleared", None, None, {}),
        (FILE + "Start do retry repair", "ttp.repair_begin", None, None, {"repair": "retry"}),
        (FILE + "Start do arf repair", "ttp.repair_begin", None, None, {"repair": "arf"}),
        (FILE + "Controller:0 rollback success", "ttp.rollback_done", 0, None, {}),
        (FILE + "Controller:-1 rollback success", "ttp.rollback_done", None, None, {}),
        (
            PYTHON + "do action report_result, arg=(0, 'Mindio do repair operation ok', {}, 'recover')",
            "ttp.result",
            None,
            None,
            {"code": 0, "message": "Mindio do repair operation ok", "ranks_text": "{}", "strategy": "recover"},
        ),
        (
            PYTHON + "do action report_fault_ranks, arg=({2: 1}, {2: ''})",
            "ttp.agent_action",
            None,
            None,
            {"action": "report_fault_ranks", "arguments": "{2: 1}, {2: ''}"},
        ),
        (
            LINK + "Link 1 receive header failed, reset by peer, errno 0",
            "acc.link_reset",
            None,
            None,
            {"link": 1, "reason": "reset by peer"},
        ),
    ],
)
def test_a_line_that_matters_becomes_an_event(
    line: str, kind: str, rank: int | None, step: int | None, fields: dict[str, Any]
) -> None:
    event = read(line)
    thread = event.fields["thread"]
    assert (event.kind, event.rank, event.step) == (kind, rank, step)
    assert event.fields == {**fields, "thread": thread}


def test_a_dump_can_be_followed_from_detection_to_rename(data: Path) -> None:
    scan = LogScan()
    events = list(read_log(data / "ttp_log.log.30677", [TtpLogReader(UTC)], scan=scan))
    kinds = [event.kind for event in events]
    expected = [
        "status_error",
        "heartbeat_lost",
        "prelocked",
        "dump_config",
        "dump_begin",
        "dump_result",
        "renamed",
        "dump_done",
    ]
    at = [kinds.index(f"ttp.{kind}") for kind in expected]
    assert at == sorted(at)
    states = [event.fields["state"] for event in events if event.kind == "ttp.state"]
    assert states == ["NORMAL", "ABNORMAL", "DUMP", "EXIT"]
    assert {event.pid for event in events} == {30677}
    assert {event.rank: event.fields["group"] for event in events if event.kind == "ttp.registered"} == {
        1: [1, 3],
        2: [0, 2],
    }


def test_a_torn_last_line_is_told_and_not_read(data: Path) -> None:
    scan = LogScan()
    events = list(read_log(data / "ttp_log.log.30677", [TtpLogReader(UTC)], scan=scan))
    content = (data / "ttp_log.log.30677").read_bytes()
    assert content.endswith(b"\n2026")
    assert (scan.torn, scan.lines) == (True, content.count(b"\n"))
    assert events[-1].line <= scan.lines


def test_a_process_recovery_can_be_followed_to_its_result(data: Path) -> None:
    events = list(read_log(data / "ttp_log.log.7790", [TtpLogReader(UTC)]))
    kinds = [event.kind for event in events]
    expected = ["repair_begin", "groups_rebuilt", "rollback_begin", "rollback_done", "normal_begin", "result"]
    at = [kinds.index(f"ttp.{kind}") for kind in expected]
    assert at == sorted(at)
    assert [event.step for event in events if event.kind == "ttp.repair_step"] == [10]
    assert [event.fields["code"] for event in events if event.kind == "ttp.result"] == [0]


def test_a_processors_own_log_tells_what_its_rank_was_asked(data: Path) -> None:
    events = list(read_log(data / "ttp_log.log.1309", [TtpLogReader(UTC)]))
    asked = [event.fields["message"] for event in events if event.kind == "ttp.received"]
    assert asked[:5] == ["prelock", "device stop", "device clean", "repair", "rollback"]
    assert {event.rank for event in events if event.kind != "ttp.repair_step"} == {3}


def test_lines_that_are_not_known_are_counted_and_shown(tmp_path: Path) -> None:
    known, unknown = FILE + "finish rename, rank:1", FILE.replace("warning", "info") + "a form of a later version"
    path = tmp_path / "ttp_log.log.30677"
    path.write_text(f"{known}\n{unknown}\n{known}\n")
    scan = LogScan()
    kinds = Counter(event.kind for event in read_log(path, [TtpLogReader(UTC)], scan=scan))
    assert (kinds, scan.unknown) == ({"ttp.renamed": 2}, 1)
    assert scan.samples == [(2, unknown)]


def test_the_zone_of_the_writing_machine_is_respected() -> None:
    line = FILE + "finish rename, rank:1"
    shanghai = TtpLogReader(timezone(timedelta(hours=8))).read(line)
    assert shanghai is not None and shanghai.wall_ns is not None
    assert shanghai.wall_ns + 8 * 3600 * 10**9 == read(line).wall_ns


@pytest.mark.parametrize(
    "line",
    ["", "finish rename, rank:1", FILE + "finish rename, rank:", FILE, "2026-11-21 01:32:19.903248 x [TTP a:1] y"],
)
def test_other_lines_are_no_events(line: str) -> None:
    assert TtpLogReader(UTC).read(line) is None


def test_an_impossible_time_leaves_the_event_without_one() -> None:
    assert read(FILE.replace("-11-21", "-13-41") + "finish rename, rank:1").wall_ns is None


def test_a_number_that_is_too_long_is_no_rank() -> None:
    assert read(FILE + "finish rename, rank:" + "9" * 5000).rank is None
