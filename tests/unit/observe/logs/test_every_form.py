"""Every form of line below forms/ is read as it says, by one reader only, and not by its neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timezone
from pathlib import Path

import pytest

from chaos.observe.logs import device_log, mindformers_log, mindspore_log, msrun_log, taskd_log
from chaos.observe.logs.acl_codes import ACL_ERRORS
from chaos.observe.logs.device_log import DeviceLogReader
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.mindformers_log import MindFormersLogReader
from chaos.observe.logs.mindspore_log import MindSporeLogReader
from chaos.observe.logs.patterns import Known
from chaos.observe.logs.reader import built_in_readers, choose_reader, read_log
from chaos.observe.logs.taskd_log import TaskdLogReader
from chaos.observe.logs.torch import megatron_log, mindspeed_log, rank_log, torchrun_log
from chaos.observe.logs.ttp import log as ttp_log
from tests.kit.growing_cost import MOST_GROWTH, TIMES, growth, processor_seconds
from tests.kit.log_forms import FORMS, form_rows

READERS = {reader.name: reader for reader in built_in_readers(timezone.utc)}


ROWS = form_rows()


def test_every_reader_has_forms() -> None:
    assert {reader for _, reader, _ in ROWS} == set(READERS)
    table_lines = [line for page in FORMS for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(ROWS) == len(table_lines) > 150


def test_every_form_that_a_reader_knows_has_a_sample() -> None:
    tables: list[tuple[str, Known]] = [("device", form) for form in device_log._TABLE]
    tables += [("mindformers", form) for form in mindformers_log._TABLE]
    tables += [("mindspore", form) for form in mindspore_log._TABLE]
    tables += [("mindspore", form) for form in device_log._RESULTS]
    tables += [("msrun", form) for form in msrun_log._TABLE]
    tables += [("taskd", form) for form in taskd_log._TABLE]
    tables += [("torchrun", form) for form in (*torchrun_log._TABLE, *torchrun_log._SUMMARY)]
    tables += [("torch", form) for form in (*rank_log._LOGGED, *rank_log._RAISED)]
    tables += [("megatron", form) for form in megatron_log._TABLE]
    tables += [("mindspeed", form) for form in mindspeed_log._TABLE]
    tables += [("ttp", one) for table in ttp_log._TABLES.values() for one in table]
    missing = [
        (reader, entry.kind, entry.literal)
        for reader, entry in tables
        if not any(is_shown(entry, line) for line, own, kind in ROWS if (own, kind) == (reader, entry.kind))
    ]
    assert missing == []


def is_shown(entry: Known, line: str) -> bool:
    """Whether the line is of this form, wherever in it the message begins."""
    starts = [0, *(match.end() for match in re.finditer(r"^ +|[\]:-] |\] {2,8}|\d {4,5}", line))]
    return entry.literal in line and any(entry.pattern.search(line[start:]) for start in starts)


SEARCHED = {
    # Part of a longer message in practice: msrun and CANN put other words before it.
    *(kind for _, reader, kind in ROWS if reader == "msrun"),
    *("device.memory_error", "device.cqe_error"),
}


def test_a_form_is_read_by_one_reader_as_the_event_beside_it() -> None:
    """That of errors takes what all others leave, and is asked after them."""
    for line, reader, kind in ROWS:
        found = {name: event.kind for name, one in READERS.items() if (event := one.read(line)) is not None}
        others = {name: event for name, event in found.items() if name != "errors"}
        assert (others or found) == {reader: kind}, line


PREFIXED = ("ttp", "taskd", "mindformers")


def test_each_line_with_a_prefix_of_its_program_is_enough_to_choose_the_reader() -> None:
    prefixed = [(line, reader) for line, reader, _ in ROWS if reader in PREFIXED]
    prefixed += [(line, reader) for line, reader, _ in ROWS if line.startswith("[ERROR] HCCL(")]
    prefixed += [
        (line, reader) for line, reader, _ in ROWS if line.startswith(("W1128 ", "[E1003 ")) and reader != "errors"
    ]
    assert {reader for _, reader in prefixed} == {*PREFIXED, "device", "torchrun", "torch"}
    for line, expected in prefixed:
        chosen = choose_reader([line], list(READERS.values()))
        assert chosen is not None and chosen.name == expected, line


def test_the_same_words_inside_another_text_are_no_event_of_that_kind() -> None:
    """A traceback shows source lines, and programs quote each other: such a line is never the fact itself."""
    exact = [row for row in ROWS if row[2] not in SEARCHED]
    assert len(exact) > 100
    for line, reader, kind in exact:
        event = READERS[reader].read(f'    raise ValueError("{line}")')
        assert event is None or event.kind != kind, line


LINE = 40_000
"""Characters; a line may have half as many again (chaos.observe.logs.lines)."""

LOOKED_AT = 0.05
"""Seconds from which on a line of that length is measured again, at two lengths: most take 0.005 s, and an expression
that looks back from 1,000 places 0.2 s. A line above it on a slow machine costs the test time, and fails nothing.
"""

SHORT, LONG = 8_000, 8_000 * TIMES
"""Lengths between which an expression that looks back grows by the square, also one of at most 65,536 characters."""


def is_slow(reader: str, line: Callable[[int], str]) -> bool:
    """Whether a reader takes far more than in proportion for a line that is given by its length."""
    read = READERS[reader].read
    if processor_seconds(read, line(LINE)) < LOOKED_AT:
        return False
    return growth(read, line(SHORT), line(LONG)) > MOST_GROWTH


def filled(before: str, piece: str, after: str = "") -> Callable[[int], str]:
    """Lines that are full of one piece."""
    return lambda length: before + piece * (length // len(piece)) + after


def test_no_line_takes_long_however_long_it_is() -> None:
    """An expression that looks back from every place of a line takes minutes for a long one."""
    slow = []
    for line, reader, _ in ROWS:
        middle = len(line) // 2
        hostile = (filled(line, ".", "x"), filled(line[:middle], "a", line[middle:]), filled("", line[:-1]))
        slow += [made(200) for made in hostile if is_slow(reader, made)]
    assert slow == []


TTP_PREFIX = "2026-11-21 01:32:19.903248 30710 info [30710][3808][PYH ttp_controller.py:70] "
_OPENS = re.compile(r"[\[({'\"=:,] ?")


def beginnings(line: str) -> list[tuple[str, str]]:
    """What stands before a message, and every beginning of it after which a text without an end may come."""
    starts = [0, *(match.end() for match in re.finditer(r"[\]:-] |\] {2,8}|\d {4,5}", line))]
    return [(line[:start], line[start : opened.end()]) for start in starts for opened in _OPENS.finditer(line, start)]


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("reader", READERS)
def test_no_line_that_is_full_of_one_beginning_takes_long(reader: str, stride: int) -> None:
    """From each of them an expression may look to the end of the line: the square of its length."""
    texts = {text for line, own, _ in ROWS if own == reader for text in beginnings(line)}
    assert [text for text in sorted(texts)[::stride] if is_slow(reader, filled(*text))] == []


@pytest.mark.parametrize(
    ("reader", "beginning", "literal"),
    [
        ("mindspore", "catch an error: ", "HcclWatchdogThread "),
        ("msrun", "The new node: ", "is registered successfully "),
        ("msrun", "timed out node is 1. Timed out node list is: {", "The total number of "),
        ("ttp", "do action report_a, arg=(", TTP_PREFIX),
        ("ttp", "do action report_result, arg=(1, '', {", TTP_PREFIX),
    ],
)
def test_a_line_full_of_beginnings_without_an_end_takes_no_time(reader: str, beginning: str, literal: str) -> None:
    line = filled(literal, beginning)
    assert READERS[reader].read(line(LINE)) is None
    assert growth(READERS[reader].read, line(SHORT), line(LONG)) < MOST_GROWTH


def step(message: str) -> LogEvent:
    prefix = "2026-11-21 01:28:53,952 - mindformers/log[mindformers/core/callback/callback.py:747] - INFO - "
    event = MindFormersLogReader(timezone.utc).read(prefix + message)
    assert event is not None
    return event


def test_a_step_tells_its_separate_losses_its_norm_and_its_throughput() -> None:
    fields = step(
        "{ Epoch:[  1/  1], step:[   77/10000], loss: 10.649, lm_loss: 10.600000, load_balancing_loss: 0.010000, "
        "mtp_loss: 0.039000, indexer_loss: 0.001000, per_step_time: 3ms, lr: [1.e-05], overflow cond: [ True], "
        "loss_scale: [1024.], global_norm: [10.579812], train_throughput_per_npu: 2.896T"
    ).fields
    separate = {"lm_loss": 10.6, "load_balancing_loss": 0.01, "mtp_loss": 0.039, "indexer_loss": 0.001}
    loss = {"loss_text": "10.649", "loss": 10.649, "places": 3}
    others = {"step_ms": 3, "lr": 1e-05, "overflow": True, "loss_scale": 1024.0, "global_norm": 10.579812}
    assert fields == loss | separate | others | {"tflops_per_npu": 2.896}


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("loss_scale: unavailable, global_norm: None", {}),
        ("loss_scale: unavailable, global_norm: [1 31049]", {"global_norm_text": "[1 31049]"}),
        ("loss_scale: 1.0, global_norm [10.579812]", {"loss_scale": 1.0, "global_norm": 10.579812}),
        ("global_norm: 0.6770807", {"global_norm": 0.6770807}),
    ],
)
def test_what_is_no_number_is_not_made_one(tail: str, expected: dict[str, object]) -> None:
    """The documents show `[1 31049]`: a norm of 1 would be a wrong fact."""
    fields = step(f"{{ Epoch:[  1/  1], step:[    3/    8], loss: 1.500, per_step_time: 3ms, {tail}").fields
    names = ("loss_scale", "global_norm", "global_norm_text")
    assert {name: fields[name] for name in names if name in fields} == expected


def test_a_step_of_pynative_tells_its_samples_and_the_losses_of_each_mtp_layer() -> None:
    fields = step(
        "{ step:[    2/   10], consumed_samples: 16, global_batch_size: 8, loss:  11.755612, per_step_time:    710ms, "
        "load_balancing_loss:   0.100000, mtp-1-loss:   2.500000, mtp_2_loss:   2.600000, lr: 1.000000e-05, "
        "grad_norm: NaN, throughput:  25.92T }"
    ).fields
    assert (fields["consumed_samples"], fields["global_batch_size"], fields["step_ms"]) == (16, 8, 710)
    assert (fields["mtp_1_loss"], fields["mtp_2_loss"], fields["tflops_per_npu"]) == (2.5, 2.6, 25.92)
    assert str(fields["global_norm"]) == "nan"


def test_the_bar_tells_how_far_and_how_fast() -> None:
    bar = step("   81.2% |████████████          | 31.57 samples/s/p  0:00:01 }")
    assert bar.fields == {"percent": 81.2, "samples_per_second_per_npu": 31.57, "left_text": "0:00:01"}
    assert step("   81.2% |██| 31.57 samples/s/p  0:0").fields == {}


def device(message: str) -> LogEvent:
    prefix = "[ERROR] HCCL(11262,python3):2026-01-31-03:00:14.192.200 [exchanger_network.cc:237][11262]"
    event = DeviceLogReader(timezone.utc).read(prefix + message)
    assert event is not None
    return event


@pytest.mark.parametrize("code", sorted(ACL_ERRORS))
def test_an_error_of_the_runtime_is_told_by_its_code(code: int) -> None:
    event = device(f"rtStreamSynchronize failed, retCode={code}, stream 3")
    assert (event.kind, event.fields["code"], event.fields["meaning"]) == ("device.acl_error", code, ACL_ERRORS[code])


@pytest.mark.parametrize(
    "text",
    [
        "synchronize stream failed, runtime result = 507059[FUNC:ReportCallError]",
        "rtX failed, ret=507059",
        "rtX failed, ret: 507059",
        "rtX failed, ret[507059]",
        "rtX failed, retcode: 507059 ( words)",
        "rtX failed, error code 507059",
        "rtX failed, error code is 507059",
        "rtX failed, error code [507059].",
        "rtX:ErrCode=507059",
        "rtX fail. return[507059].",
        "rtX failed, return: 507059",
        "runtime errorCode = 507059, channel",
        "rtX failed, return value 507059",
        "rtX failed, return 507059",
        "rtX: rtRet[507059]",
        "rtX: rt_ret=507059",
        "rtX: result=507059",
        "rtX: streamStatus=507059",
        "rtX: aclError:507059",
    ],
)
def test_a_code_without_a_documented_meaning_is_an_event_in_every_wording(text: str) -> None:
    event = device(text)
    assert (event.kind, event.fields) == ("device.acl_error", {"code": 507059, "module": "HCCL"})


def test_the_two_codes_of_one_error_are_one_event() -> None:
    event = device("rtX:ErrCode=507011, desc=[the model stream execute failed], InnerCode=0x7150050")
    assert event.kind == "device.acl_error"
    assert (event.fields["code"], event.fields["own_text"]) == (507011, "0x7150050")
    assert event.fields["reason_text"] == "the model stream execute failed"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("retCode=0x7110001", {"own_text": "0x7110001", "code": 107000, "meaning": "wrong argument"}),
        ("retCode=0x715005e.", {"own_text": "0x715005e", "code": 507035, "meaning": "vector core exception"}),
        ("retCode=117571606!", {"own_text": "117571606", "code": 207001, "meaning": "no memory left"}),
        ("retCode=0x7FF0001", {"own_text": "0x7FF0001"}),
        ("retCode=0x222, [suspect remote error].", {"own_text": "0x222", "reason_text": "suspect remote error"}),
    ],
)
def test_a_code_of_the_runtimes_own_is_told_with_the_one_that_it_returns_for_it(
    text: str, fields: dict[str, object]
) -> None:
    event = device(f"Stream Synchronize failed, stream_id=3, {text}")
    assert (event.kind, event.fields) == ("device.runtime_error", fields | {"module": "HCCL"})


@pytest.mark.parametrize(
    ("line", "kind", "pid"),
    [
        ("        synchronize stream failed, runtime result = 507015[FUNC:A][FILE:a.cpp][LINE:1]", "acl_error", None),
        ("        Failed to submit kernel task, retCode=0x7150026.[FUNC:A][FILE:a.cc][LINE:1]", "runtime_error", None),
        ("EH9999: [PID: 961] 2026-09-07-01:11:09.333.567 runtime result = 507015[FUNC:A]", "acl_error", 961),
    ],
)
def test_what_cann_says_without_its_prefix_has_the_rank_of_the_log(
    line: str, kind: str, pid: int | None, tmp_path: Path
) -> None:
    (tmp_path / "worker_3.log").write_text(f"{line}\n")
    (event,) = read_log(tmp_path / "worker_3.log", list(READERS.values()))
    assert (event.kind, event.rank, event.pid) == (f"device.{kind}", 3, pid)
    assert (event.fields["code"], event.fields["meaning"]) == (507015, "AI core exception")


@pytest.mark.parametrize(
    "line",
    [
        "    raise RuntimeError('synchronize stream failed, runtime result = 507015[FUNC:A][FILE:a.cpp][LINE:1]')",
        "step 3 done, ret=507015",
        "    ret=507015",
        "loss 1.0, error code 507015",
    ],
)
def test_a_number_in_another_programs_line_is_no_code(line: str) -> None:
    assert [reader for reader, one in READERS.items() if one.read(line) is not None] == []


@pytest.mark.parametrize("text", ["took 507.054 ms", "id 5070541", "id 1507054", "id 507058"])
def test_another_number_is_no_error_of_the_runtime(text: str) -> None:
    prefix = "[ERROR] RUNTIME(11262,python3):2026-01-31-03:00:14.192.200 [stream.cc:2][11262]"
    assert DeviceLogReader(timezone.utc).read(prefix + text) is None


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("INFO", "2103 ProcReport: stream_id=3, task_id=107022, task_type=1"),
        ("ERROR", "alloc size=507054 bytes"),
        ("ERROR", "[stream.cc:2][107022] stream 3"),
        ("INFO", "cqe error count 0"),
    ],
)
def test_a_number_that_the_runtime_does_not_call_a_code_is_none(level: str, text: str) -> None:
    line = f"[{level}] RUNTIME(2103,python):2026-01-31-03:00:14.192.200 [engine.cc:201]{text}"
    assert DeviceLogReader(timezone.utc).read(line) is None


def test_a_device_log_tells_time_and_process_and_a_rank_within_the_group() -> None:
    event = device("[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[10] timeout[130]")
    assert (event.rank, event.pid, event.wall_ns) == (None, 11262, 1_769_828_414_192_200_000)
    assert event.fields == {"group_rank": 10, "role": 1, "seconds": 130, "module": "HCCL"}
    memory = device("HBM MULTI BIT ECC, Uncorrectable ECC, device_id=3, event_id=0x80e01801, time us=67672363666.")
    assert (memory.fields["device"], memory.fields["event_text"]) == (3, "0x80e01801")


def test_an_error_code_in_a_workers_log_has_its_own_time_and_process() -> None:
    event = DeviceLogReader(timezone.utc).read(
        "[PID: 335] 2026-03-13-06:55:06.896.485 Execution_Error_ROCE_CQE(EI0013): An error CQE occurred during"
    )
    assert event is not None
    assert (event.kind, event.pid, event.wall_ns) == ("device.cqe_error", 335, 1_773_384_906_896_000_000)


def test_a_line_of_mindspore_is_not_taken_for_a_device_log() -> None:
    for line in (
        "[ERROR] DISTRIBUTED(5918,7f34b5b9e6c0,python):2026-11-21-06:03:48.287.665 [a.cc:548] F] failed 507054",
        "[ERROR] ME(5903:139725708582976,MainProcess):2026-11-21-06:03:20.673.000 [a.py:365] failed 507054",
    ):
        assert not DeviceLogReader(timezone.utc).recognises([line])
        assert DeviceLogReader(timezone.utc).read(line) is None
        assert MindSporeLogReader(timezone.utc).recognises([line])


def test_both_parts_of_taskd_tell_the_right_time() -> None:
    go = TaskdLogReader(timezone.utc).read(
        "[INFO]     2026/11/21 07:38:56.551173 12      manager/manager.go:665    send process fault to clusterd, "
        "fault ranks: [2]"
    )
    python = TaskdLogReader(timezone.utc).read(
        "[WARNING]     2026/11/21 07:38:56.000551 5903   msrun_plugin.py:104     nodeRank:0 will start workers"
    )
    assert go is not None and python is not None
    assert (go.wall_ns, go.pid) == (1_795_246_736_551_173_000, None)
    assert (python.wall_ns, python.pid) == (1_795_246_736_551_000_000, 5903)
