"""Numbers within a communicator are no ranks of the job, and HCCL's word on who is lost names host and device."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.patterns import find_event, known
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log

HCCL = "[ERROR] HCCL(5375,python):2025-08-06-23:09:01.834.041 [a.cc:1] [5792]"
INFO = HCCL.replace("ERROR", "INFO")
SUSPICION = "Cluster Exception Location[IP/ID]:[10.0.0.1/9], Arrival Time:[Thu Oct 23 07:02:58 2025], "


def read(folder: Path, *lines: str) -> tuple[list[LogEvent], LogScan]:
    path, scan = folder / "worker_9.log", LogScan()
    path.write_text("".join(f"{line}\n" for line in lines))
    return list(read_log(path, built_in_readers(timezone.utc), scan=scan)), scan


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            "[Wait][LinkEstablish]wait socket establish timeout, role[0] rank[1] timeout[120]",
            {"group_rank": 1, "role": 0, "seconds": 120},
        ),
        (
            "[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[1] timeout[120 s]",
            {"group_rank": 1, "role": 1, "seconds": 120},
        ),
        (
            "[TaskException]base information is streamId:149, sqid:153, head:1, tail:3, type:NOTIFY WAIT, localRank:1, "
            "remoteRank:0, taskId:26064",
            {"group_rank": 1, "remote_group_rank": 0, "type": "NOTIFY WAIT"},
        ),
        (
            "[TaskException]base information is streamId:149, type:NOTIFY RECORD, localRank:1, remoteRank:4294967295, "
            "taskId:26064",
            {"group_rank": 1, "remote_group_rank_text": "4294967295", "type": "NOTIFY RECORD"},
        ),
    ],
)
def test_a_number_within_a_communicator_is_a_field(tmp_path: Path, message: str, fields: dict[str, Any]) -> None:
    ((event,), _) = read(tmp_path, HCCL + message)
    assert (event.rank, event.fields) == (9, {**fields, "module": "HCCL"})


@pytest.mark.parametrize("text", ["4294967295", "2147483647", "-1"])
def test_what_stands_for_no_rank_is_none(text: str) -> None:
    event = find_event((known("a.b", "rank:", r"rank:(?P<rank>-?\d+)"),), f"rank:{text}", None, None)
    assert event is not None
    assert event.rank is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("LOST", "device.heartbeat_lost"),
        ("STUCK", "device.stuck"),
        ("ERROR CQE", "device.cqe_error"),
        ("INCONSISTENT", "device.inconsistent"),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "[HCCL_TRACE]rank [10.0.0.1/1]: rank [10.0.0.1/9] status[{}] by rank [10.0.0.1/2]",
        "[TaskExecStage][HeartbeatAbnormal]local rank [10.0.0.1/1]: crimer rank [10.0.0.1/9] status[{}] by informer "
        "rank [10.0.0.1/2]",
    ],
)
def test_a_status_names_who_is_lost_and_who_says_so(tmp_path: Path, form: str, status: str, kind: str) -> None:
    ((event,), _) = read(tmp_path, INFO + form.format(status))
    fields = {"local_text": "10.0.0.1/1", "remote_text": "10.0.0.1/9", "by_text": "10.0.0.1/2", "status_text": status}
    assert (event.kind, event.rank, event.fields) == (kind, 9, {**fields, "module": "HCCL"})


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ("Heartbeat Lost Occurred", "device.heartbeat_lost"),
        ("Stuck Occurred", "device.stuck"),
        ("Error cqe Occurred", "device.cqe_error"),
        ("OpRetry Not Supported Occurred", "device.retry_refused"),
        ("Something New Occurred", "device.suspected"),
    ],
)
@pytest.mark.parametrize("before", [HCCL, "    "])
def test_a_suspicion_is_read_behind_the_prefix_and_as_a_line_of_an_error_code(
    tmp_path: Path, before: str, named: str, kind: str
) -> None:
    line = f"{before}{SUSPICION}Discoverer:[10.0.0.1/2], ExceptionType:[{named}], Possible Reason:1. Link flaps"
    ((event,), scan) = read(tmp_path, line)
    assert (event.kind, event.rank, scan.unknown) == (kind, 9, 0)
    fields = {
        "remote_text": "10.0.0.1/9",
        "by_text": "10.0.0.1/2",
        "status_text": named,
        "reason_text": "1. Link flaps",
    }
    assert fields.items() <= event.fields.items()


def test_a_suspicion_without_who_noticed_it_is_read(tmp_path: Path) -> None:
    ((event,), _) = read(tmp_path, f"{HCCL}{SUSPICION}ExceptionType:[Stuck Occurred], Possible Reason:1.Host process")
    assert (event.kind, event.fields["remote_text"]) == ("device.stuck", "10.0.0.1/9")


def test_what_hccl_counts_below_the_level_of_an_error_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, f"{INFO}cqe error count 0")[0] == []


def test_a_suspicion_that_another_line_quotes_is_none(tmp_path: Path) -> None:
    line = f"the log said: {SUSPICION}ExceptionType:[Stuck Occurred], Possible Reason:1.Host process"
    assert read(tmp_path, line)[0] == []
