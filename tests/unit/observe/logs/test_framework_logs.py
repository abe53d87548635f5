"""Lines of msrun, the scheduler, MindSpore and MindFormers. The files in data/ are excerpts of real logs on a CPU."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.observe.logs.device_log import DeviceLogReader
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.mindformers_log import MindFormersLogReader
from chaos.observe.logs.mindspore_log import MindSporeLogReader
from chaos.observe.logs.msrun_log import MsrunLogReader
from chaos.observe.logs.reader import built_in_readers, read_log

UTC = timezone.utc
ME = "[ERROR] ME(5903:139725708582976,MainProcess):2026-11-21-06:03:20.673.000 [mindspore/train/model.py:192] "


def msrun(line: str) -> LogEvent:
    event = MsrunLogReader(UTC).read(line)
    assert event is not None, line
    return event


def mindspore(line: str) -> LogEvent:
    event = MindSporeLogReader(UTC).read(line)
    assert event is not None, line
    return event


def nanoseconds(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000


def test_the_end_of_a_job_is_read_from_msruns_output(data: Path) -> None:
    events = list(read_log(data / "msrun.txt", [MsrunLogReader(UTC)], name="logs/train/msrun.log"))
    by_kind = {event.kind: event for event in events}
    assert [event.rank for event in events if event.kind == "msrun.worker_start"] == [0, 1]
    exited = by_kind["msrun.worker_exit"]
    assert (exited.fields, exited.pid) == ({"worker_pid": 5920, "code": -9}, 5903)
    assert exited.wall_ns == nanoseconds("2026-11-21 06:03:20.673")
    assert exited.source == "logs/train/msrun.log:5"
    assert by_kind["msrun.scheduler_exit"].fields == {"scheduler_pid": 5918}
    assert by_kind["msrun.failed"].fields == {"directory": "logs/train"}
    assert {"msrun.scheduler_start", "msrun.spawned", "msrun.kill_workers"} <= set(by_kind)


def test_a_node_that_the_scheduler_blames_is_not_taken_for_the_rank_that_failed(data: Path) -> None:
    """In this run rank 1 was killed, and the scheduler named node 0."""
    events = list(read_log(data / "scheduler.txt", [MsrunLogReader(UTC)]))
    lost = [event for event in events if event.kind in ("cluster.node_lost", "cluster.nodes_lost")]
    assert [(event.rank, event.fields) for event in lost] == [
        (None, {"node": 0}),
        (None, {"count": 1, "nodes": [0], "first": 0}),
    ]
    assert lost[0].wall_ns == nanoseconds("2026-11-21 06:03:48.287665")
    assert [event.rank for event in events if event.kind == "cluster.registered"] == [0, 1]
    assert [event.kind for event in events][:2] == ["cluster.waiting", "cluster.registered"]


@pytest.mark.parametrize(
    ("line", "kind", "fields"),
    [
        ("Repeated registration node: 1 to the scheduler", "cluster.refused", {"node": 1}),
        ("The node: 1 have been recovered", "cluster.recovered", {"node": 1}),
        ("Cluster currently has 2 alive nodes.", "cluster.alive", {"nodes": 2}),
        ("Topology build timed out., retry(1/240).", "cluster.waiting", {"tries": 1, "of": 240}),
        (
            "The total number of timed out node is 2. Timed out node list is: [const vector]{1, 3}, worker 1 is the "
            "first one timed out",
            "cluster.nodes_lost",
            {"count": 2, "nodes": [1, 3], "first": 1},
        ),
        ("All workers successfully exit!", "msrun.workers_done", {}),
        ("msrun process received SIGINT (Ctrl+C), terminating all workers.", "msrun.interrupted", {}),
    ],
)
def test_a_line_of_the_cluster_becomes_an_event(line: str, kind: str, fields: dict[str, Any]) -> None:
    for form in (line, ME + line, ME + "UpdateTopoState] " + line):
        event = msrun(form)
        assert (event.kind, event.fields) == (kind, fields)


@pytest.mark.parametrize(("digits", "expected"), [("900.00", 90), ("500.0", 5), ("0.", 0), ("673.000", 673)])
def test_leading_zeros_that_mindspore_drops_are_put_back(digits: str, expected: int) -> None:
    """MindSpore's Python log writes 90 ms as .900.00 and 5 ms as .500.0."""
    event = msrun(ME.replace("673.000", digits) + "There's worker exits with exception, kill all other workers.")
    assert event.wall_ns == nanoseconds("2026-11-21 06:03:20") + expected * 10**6


def test_losses_are_read_as_printed_and_as_numbers(data: Path) -> None:
    losses = [e for e in read_log(data / "worker.txt", [MindSporeLogReader(UTC)]) if e.kind == "train.loss"]
    assert [event.fields["step_in_epoch"] for event in losses] == [1, 2, 3, 4, 5]
    assert losses[0].fields["loss"] == 0.4188555181026459
    assert losses[0].fields["loss_text"] == "0.4188555181026459"
    assert (losses[0].wall_ns, losses[0].step) == (None, None)
    assert math.isnan(mindspore("epoch: 1 step: 77, loss is nan").fields["loss"])
    assert mindspore("epoch: 1 step: 77, loss is None").fields["loss"] is None


def test_lines_of_mindformers_are_read_with_their_time(data: Path) -> None:
    events = list(read_log(data / "mindformers.txt", [MindSporeLogReader(UTC)]))
    saved = [event for event in events if event.kind == "checkpoint.saved"]
    assert [event.fields["step_in_epoch"] for event in saved] == [2, 4, 6]
    assert saved[0].wall_ns == nanoseconds("2026-11-21 01:28:54.587")
    # The source line of a traceback, which shows the same words, is not the error.
    assert [event.fields for event in events if event.kind == "error.classified"] == [{"error": "TREError"}]


@pytest.mark.parametrize(
    ("line", "kind", "step", "fields"),
    [
        (
            ME + "Enter _save_checkpoint_on_failure function",
            "tft.handler_begin",
            None,
            {"handler": "save_checkpoint_on_failure"},
        ),
        (
            ME + "Finish _save_checkpoint_on_failure function",
            "tft.handler_end",
            None,
            {"handler": "save_checkpoint_on_failure"},
        ),
        (ME + "Enter _tft_stop_callback device_id: 0", "tft.handler_begin", None, {"handler": "tft_stop_callback"}),
        (ME + "Enter _tft_stop_callback", "tft.handler_begin", None, {"handler": "tft_stop_callback"}),
        (ME + "Finish _tft_clean_callback, ret: 0", "tft.handler_end", None, {"handler": "tft_clean_callback"}),
        (
            ME + "Enter _tft_rebuild_groups, device id: 0",
            "tft.handler_begin",
            None,
            {"handler": "tft_rebuild_groups"},
        ),
        (ME + "Enter _tft_rebuild_groups ok ", "tft.handler_end", None, {"handler": "tft_rebuild_groups"}),
        (
            ME + "Enter mindio ttp exit process, which means other ranks occur exception, check other ranks' logs!",
            "tft.exit",
            None,
            {},
        ),
        (
            ME + "uce wrapper caught repair finish REPAIR STEP: 9 batch_num:4",
            "tft.repaired",
            9,
            {"batch_num": 4},
        ),
        (ME + "Resume training after TREError from step 14.", "tft.resumed", 14, {}),
        (
            "RuntimeError: UCEError error occurs when execute, error_code=507054",
            "error.classified",
            None,
            {"error": "UCEError", "code": 507054},
        ),
        ("RuntimeError: ARF FINISH , do next step repair weight.", "error.classified", None, {"error": "ARF FINISH"}),
        (
            ME + "Use the compilation cache and execute the backend actions only. Be aware of correctness risks.",
            "compile.cache_hit",
            None,
            {},
        ),
        (
            ME + "Failed to find cache file, execute all the compilation actions.",
            "compile.cache_miss",
            None,
            {},
        ),
        (
            ME + "HcclWatchdogThread catch an error: link down, rank id: 3, group name: dp",
            "watchdog.error",
            None,
            {"text": "link down", "group": "dp"},
        ),
        (
            ME + "Ring ReduceScatter wait receiving [2,17] failed",
            "collective.wait_failed",
            None,
            {"collective": "Ring ReduceScatter", "peer": 2, "request": 17},
        ),
        ("Train epoch time: 1060.460 ms, per step time: 132.557 ms", "train.epoch_time", None, None),
    ],
)
def test_a_line_of_a_worker_becomes_an_event(
    line: str, kind: str, step: int | None, fields: dict[str, Any] | None
) -> None:
    event = mindspore(line)
    assert (event.kind, event.step) == (kind, step)
    assert event.fields == ({"mode": "Train", "epoch_ms": 1060.46, "step_ms": 132.557} if fields is None else fields)


@pytest.mark.parametrize(
    "line",
    [
        '    raise RuntimeError("STEP FINISH")',
        "the epoch: 1 step: 2, loss is 3",
    ],
)
def test_a_line_that_only_looks_alike_is_no_event(line: str) -> None:
    assert MindSporeLogReader(UTC).read(line) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Enter _tft_clean_callback resume_hccl_comm", "tft.handler_step"),
        ("Enter _tft_repair_callback SEND_RECV repair type:0, src_rank:[1], dst_rank: [2]", "tft.copy"),
    ],
)
def test_a_step_inside_a_handler_is_not_taken_for_its_beginning(line: str, kind: str) -> None:
    assert mindspore(ME + line).kind == kind


def test_the_lines_of_a_rollback_are_read() -> None:
    prefix = "2026-11-21 01:28:56,320 - mindformers/log[mindformers/core/callback/callback.py:1044] - INFO - "
    reader = MindSporeLogReader(UTC)
    thrown = reader.read(
        f"{prefix}Current global norm [45.702465] is greater equal than threshold 44.0, stop training..."
    )
    assert thrown is not None
    assert (thrown.kind, thrown.fields) == ("tre.thrown", {"norm": 45.702465, "threshold": 44.0})
    bare = reader.read(
        f"{prefix}Current global norm 52.48709487915039 is greater equal than threshold 5.0, stop training..."
    )
    assert bare is not None
    assert bare.fields["norm"] == 52.48709487915039
    again = reader.read(
        f"{prefix}The global norm [45.706497] of step 2 is still greater or equal than threshold 44.0, "
        "continue training."
    )
    assert again is not None
    assert (again.kind, again.step, again.fields["norm"]) == ("tre.again", 2, 45.706497)


DEVICE = "[ERROR] DEVICE(5918,7f34b5b9e6c0,python):2026-11-21-06:03:48.287.665 [mindspore/ccsrc/a.cc:241] SyncStream] "


@pytest.mark.parametrize("error", ["UCEError", "HCCEError", "SuspectRemoteError", "ForceStopError"])
@pytest.mark.parametrize("words", ["occurred.", "occurs when execute.", "error occurs when execute"])
@pytest.mark.parametrize("before", ["", "RuntimeError: ", ME, DEVICE])
def test_an_error_that_the_framework_classifies_is_known_in_all_its_wordings(
    error: str, words: str, before: str
) -> None:
    """MindSpore 2.10 has both of the longer ones in its libraries; the vendor's recipe raises the short one."""
    event = mindspore(f"{before}{error} {words}")
    assert (event.kind, event.fields) == ("error.classified", {"error": error})


@pytest.mark.parametrize("line", ["    raise RuntimeError('UCEError occurred.')", '"UCEError occurs when execute."'])
def test_the_source_of_an_error_is_not_the_error(line: str) -> None:
    assert MindSporeLogReader(UTC).read(line) is None


def test_the_error_that_ends_a_job_with_too_many_spikes_is_known_with_and_without_a_prefix() -> None:
    text = "Current global norm [6.2] of step 12 has been 10 consecutive times greater than threshold 5.0, "
    prefix = "2026-11-21 01:28:56,320 - mindformers/log[mindformers/core/callback/callback.py:1070] - ERROR - "
    for line in (f"ValueError: {text}stop training...", f"{prefix}{text}stop training..."):
        event = mindspore(line)
        assert (event.kind, event.step) == ("skip.stopped", 12)
        assert event.fields == {"norm": 6.2, "times": 10, "threshold": 5.0}
        assert MindFormersLogReader(UTC).read(line) is None
    assert MindSporeLogReader(UTC).read(f'    raise ValueError("{text}stop training...")') is None


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        ("Call aclrtX error, ret[507056].", "device.acl_error", {"code": 507056, "meaning": "link"}),
        ("Call aclrtX failed, ret[107022]", "device.acl_error", {"code": 107022, "meaning": "task abort"}),
        ("stream sync, error code is 507057", "device.acl_error", {"code": 507057, "meaning": "suspect remote"}),
        ("stream sync failed, error code:507055", "device.acl_error", {"code": 507055, "meaning": "suspect memory"}),
        ("failed, error_code=507053", "device.acl_error", {"code": 507053, "meaning": "device memory"}),
        ("error cqe status 12", "device.cqe_error", {"status": 12}),
        ("EI0002: no record", "device.notify_timeout", {"code": "EI0002", "text": "no record"}),
    ],
)
def test_what_a_line_of_the_framework_says_of_a_device_is_read(message: str, kind: str, fields: dict[str, Any]) -> None:
    for prefix in (ME, DEVICE):
        event = mindspore(prefix + message)
        assert (event.kind, event.fields) == (kind, fields)
        assert event.wall_ns is not None and event.pid in (5903, 5918)
        assert DeviceLogReader(UTC).read(prefix + message) is None


def test_an_error_of_a_device_gets_the_rank_of_the_log_in_which_it_stands(tmp_path: Path) -> None:
    (tmp_path / "worker_3.log").write_text(f"{DEVICE}Call aclrtX error, ret[507056].\nRuntimeError: x, ret[507056]\n")
    events = list(read_log(tmp_path / "worker_3.log", built_in_readers(UTC)))
    assert [(event.kind, event.rank, event.pid) for event in events] == [
        ("device.acl_error", 3, 5918),
        ("device.acl_error", 3, None),
    ]


def test_a_memory_error_in_a_line_of_the_framework_has_its_time() -> None:
    line = "HBM MULTI BIT ECC, Uncorrectable ECC, device_id=3, event_id=0x80e01801, time us=67672363666."
    event = mindspore(DEVICE + line)
    assert (event.kind, event.wall_ns) == ("device.memory_error", nanoseconds("2026-11-21 06:03:48.287665"))
    assert DeviceLogReader(UTC).read(DEVICE + line) is None
    assert DeviceLogReader(UTC).read(line) is not None


@pytest.mark.parametrize(
    "message",
    [
        "failed 507054",
        "ret[1507056]",
        "ret[5070561]",
        "ret[508056]",
        "ret[307056]",
        "error code is 507056.5",
        "secret[507056]",
        "took 107022 us",
        "ret 50 of 507056",
        "return 507056",
        "result = 507056",
        "errorCode=0x2a",
        "drvRetCode=0x87",
        "retCode=0x0",
    ],
)
def test_an_ordinary_number_of_the_framework_is_no_error_of_a_device(message: str) -> None:
    for prefix in ("", "RuntimeError: ", ME, DEVICE):
        assert MindSporeLogReader(UTC).read(prefix + message) is None


def test_a_line_without_a_prefix_is_of_a_device_only_where_it_ends_a_traceback() -> None:
    for line in ("    raise RuntimeError('x, ret[507056]')", "x, ret[507056]", "error cqe status 12"):
        assert MindSporeLogReader(UTC).read(line) is None


def test_an_error_of_the_watchdog_that_quotes_a_code_stays_one_of_the_watchdog() -> None:
    line = ME + "HcclWatchdogThread catch an error: ret[507056], error cqe status 12, rank id: 3, group name: dp"
    (event,) = [one for reader in built_in_readers(UTC)[:-1] if (one := reader.read(line)) is not None]
    assert (event.kind, event.rank) == ("watchdog.error", 3)


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        ("step_num: 95", "checkpoint.holds", {"what": "step_num"}),
        ("global_step: 95", "checkpoint.holds", {"what": "global_step"}),
        ("initial step: 95", "resume.from", {}),
    ],
)
def test_the_step_that_a_checkpoint_holds_counts_over_the_whole_job(
    message: str, kind: str, fields: dict[str, Any]
) -> None:
    """MindFormers 2.1 adds its step to that of the checkpoint it was resumed from: in epoch 2 it goes on."""
    prefix = "2026-11-21 01:27:13,313 - mindformers/log[mindformers/core/callback/callback.py:1938] - INFO - "
    event = MindFormersLogReader(UTC).read(prefix + message)
    assert event is not None
    assert (event.kind, event.step, event.fields) == (kind, 95, fields)


def test_the_two_steps_of_a_save_agree_in_the_second_epoch(data: Path) -> None:
    events = list(read_log(data / "samples" / "train-2-epochs.log", built_in_readers(UTC)))
    held = [event.step for event in events if event.kind == "checkpoint.holds" and event.step is not None]
    named = [event.fields for event in events if event.kind == "checkpoint.saved"]
    assert held == [step for step in (3, 6, 9, 12, 15, 16) for _ in range(2)]
    assert [(one["epoch"] - 1) * 8 + one["step_in_epoch"] for one in named] == held[::2]
