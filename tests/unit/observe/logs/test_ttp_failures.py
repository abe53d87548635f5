"""What MindIO TFT calls an error is an event, whatever its words; and -1 is no rank of the job."""

from __future__ import annotations

import random
import re
from datetime import timezone
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.taskd_log import TaskdLogReader
from chaos.observe.logs.ttp.log import TtpLogReader
from tests.unit.observe.logs.test_every_form import ROWS

READER = TtpLogReader(timezone.utc)
WORDS = (
    "controller",
    "rank:3",
    "port: 8000",
    "ret:-2",
    "no",
    "buffer",
    "failed",
    "not",
    "ready",
    "sn: 7",
    "[1, 2]",
    "()",
)
"""Of these the texts of the fuzz are made; none of them is a form that the reader knows."""

HEADS = ("TTP controller.cpp:1", "TTP a_file_of_tomorrow.cpp:77", "PYH ttp_decorator.py:9", "ACC acc_tcp_worker.cpp:5")
SEED = 20


def read(level: str, message: str, head: str = HEADS[0]) -> LogEvent | None:
    return READER.read(f"2026-03-24 15:19:01.000000 4711 {level} [4711][{head}] {message}")


def event_of(level: str, message: str, head: str = HEADS[0]) -> LogEvent:
    event = read(level, message, head)
    assert event is not None, message
    return event


@pytest.mark.parametrize(
    ("message", "kind", "rank", "fields"),
    [
        ("controller:-1 hccl communication failed, return 1", "ttp.failed", None, {"ret": 1}),
        ("controller:-1 rename failed, ret:1", "ttp.failed", None, {"ret": 1}),
        ("controller:2 rename failed, ret:1", "ttp.failed", 2, {"ret": 1}),
        ("rebuild HCCL comm group failed", "ttp.failed", None, {}),
        ("do repair failed, ret: 1", "ttp.failed", None, {"ret": 1}),
        ("controller start server failed, master ip: 10.0.0.1, port: 8000", "ttp.failed", None, {"port": 8000}),
        ("rank:3 do prelock timeout", "ttp.prelock_failed", 3, {}),
        ("controller:-1 pre lock error.", "ttp.prelock_failed", None, {}),
        ("all rank is abnormal! rank:3", "ttp.replicas_lost", 3, {}),
        ("size not match, groupNum:2 cntSize:1", "ttp.error", None, {}),
        ("a rank is not there. rank:-1", "ttp.error", None, {}),
        ("DumpCallback: save ckpt failed, ret: 1", "ttp.dump_failed", None, {"what_text": "save ckpt", "ret": 1}),
        ("rank:2 reply rollback result failed", "ttp.reply_failed", 2, {"message": "rollback"}),
        ("Assert info.size() > 0", "ttp.assertion", None, {"condition_text": "info.size() > 0"}),
        ("this controller has stopped service.", "ttp.controller_stopped", None, {}),
        (
            "ProcessInner failed after reply error retry. opCode: ACTION_OP_REPAIR, sn: 9, not reply ranks: [3, 0].",
            "ttp.unanswered",
            None,
            {"operation": "REPAIR", "ranks": [3, 0]},
        ),
    ],
)
def test_a_failure_is_an_event_with_its_numbers(
    message: str, kind: str, rank: int | None, fields: dict[str, Any]
) -> None:
    event = event_of("error", message)
    assert (event.kind, event.rank) == (kind, rank)
    assert {name: event.fields.get(name) for name in fields} == fields


@pytest.mark.parametrize("level", ["error", "critical", "fatal"])
@pytest.mark.parametrize("head", HEADS)
def test_every_record_of_level_error_is_an_event_whatever_its_words(level: str, head: str) -> None:
    drawn = random.Random(SEED)
    for _ in range(500):
        message = " ".join(drawn.choices(WORDS, k=drawn.randint(1, 8)))
        event = event_of(level, message, head)
        assert event.kind.endswith(("failed", ".error")), message
        assert event.rank in (None, 3), message
        assert event.fields.get("port") in (None, 8000), message


@pytest.mark.parametrize("head", HEADS[:3])
def test_other_words_below_that_level_stay_unknown(head: str) -> None:
    assert read("info", "something is not ready, rank:3", head) is None
    assert read("warning", "something is not ready, rank:3", head) is None
    assert read("info", "2 of 3 tries have failed", head) is None
    assert event_of("warning", "sending the exit of rank:3 failed, ret:-1", head).kind == "ttp.failed"


def test_an_error_is_read_with_the_prefix_of_the_documents_too() -> None:
    event = READER.read("2025-04-07 15:34:27.363613 error 1879138 [TTP controller.cpp:15] rebuild of groups failed")
    assert event is not None
    assert (event.kind, event.fields["thread"]) == ("ttp.failed", 1879138)


_RANK = re.compile(r"((?:rank|rank_|Rank|[Cc]ontroller|processor): ?)\d+")
_LIST = re.compile(r"((?:ranks|failed_ranks|error_rank|list|dp): ?)\[")
NEGATIVE = sorted({(_RANK.sub(r"\g<1>-1", line), kind) for line, reader, kind in ROWS if reader == "ttp"})


def test_a_controller_outside_the_ranks_is_read_in_every_form_and_is_no_rank() -> None:
    changed = [(line, kind) for line, kind in NEGATIVE if re.search(r":-1\b|: -1\b", line)]
    assert len(changed) > 70
    for line, kind in changed:
        event = READER.read(line)
        assert event is not None and event.kind == kind, line
        assert event.rank is None, line


def test_a_list_of_ranks_never_holds_a_controller() -> None:
    lines = [(line, kind) for line, reader, kind in ROWS if reader == "ttp" and _LIST.search(line) and "[]" not in line]
    assert len(lines) >= 6
    for line, kind in lines:
        event = READER.read(_LIST.sub(r"\g<1>[-1, ", line))
        assert event is not None and event.kind == kind, line
        plain = READER.read(line)
        assert plain is not None and event.fields == plain.fields, line


STATUS = "step: 9 npu_status: {} run_status: 0 data_aval: {} data_status: 0 diff_time : 2001"


@pytest.mark.parametrize(
    ("npu", "aval", "kind"),
    [(0, 1, "ttp.heartbeat_lost"), (2, 0, "ttp.rank_abnormal"), (12, 0, "ttp.rank_abnormal")],
)
def test_only_a_missing_heartbeat_is_a_lost_one(npu: int, aval: int, kind: str) -> None:
    """A rank that reported UCE (2) or HCCE (12) lives, and the SDK uses the same words for it."""
    event = event_of("warning", f"detected abnormal heartbeat, rank:1 {STATUS.format(npu, aval)}")
    assert (event.kind, event.rank, event.step) == (kind, 1, 9)


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        ("NormalCallback found mindx event:17, ret:1", "ttp.cluster_event", {"event": 17, "ret": 1}),
        ("Mindx Cluster notify to do dump, try to do dump...", "ttp.cluster_order", {"order": "dump"}),
        ("mindx notify to exit, controller do arf repair failed", "ttp.cluster_order", {"order": "exit"}),
        ("controller do last repair op failed, mindx notify to dump", "ttp.cluster_order", {"order": "dump"}),
        ("==== this processor receive sig Terminated", "ttp.signal", {"signal_text": "Terminated"}),
        ("Controller do pause wait failed.", "ttp.pause_failed", {"what_text": "do pause wait failed"}),
        ("controller:0 pause train found network error", "ttp.pause_failed", {}),
    ],
)
def test_what_the_cluster_orders_and_what_befalls_a_pause_is_told(
    message: str, kind: str, fields: dict[str, Any]
) -> None:
    event = event_of("warning", message)
    assert event.kind == kind
    assert {name: event.fields.get(name) for name in fields} == fields


def test_chatter_of_the_transport_is_known_and_nothing_of_the_job() -> None:
    event = event_of("info", "Worker 3 is waiting for work", HEADS[3])
    assert (event.kind, event.rank, event.step) == ("acc.chatter", None, None)
    assert event_of("error", "Worker 3 has no socket", HEADS[3]).kind == "acc.error"


@pytest.mark.parametrize("line", ["rank -1 status is 300", "nodeRank:-1 will start workers"])
def test_a_number_of_the_agent_that_is_none_is_read_and_is_no_rank(line: str) -> None:
    prefix = "[WARNING]     2026/11/21 07:38:56.000551 5903   msrun_plugin.py:104     "
    event = TaskdLogReader(timezone.utc).read(prefix + line)
    assert event is not None
    assert (event.rank, event.fields.get("node")) in ((None, None), (None, -1))
