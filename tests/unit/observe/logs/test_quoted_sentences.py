"""Lines as the vendor's documents quote them: without the time, without the place, or the message alone."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.losses.loss_columns import LossScanner
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log
from chaos.observe.logs.tail import LogTail

READERS = built_in_readers(timezone.utc)
STEP = (
    "{ Epoch:[ 1/ 2], step:[ 2/ 6500], loss: 11.905, per_step_time: 2775ms, lr: 2.5641025e-08, overflow cond: False, "
    "loss_scale: 1.0, global_norm: [45.702465], train_throughput_per_npu: 171.176T"
)
PREFIXES = ("", "- INFO - ", "[mindformers/core/callback/callback.py:529] - INFO - ")
STATUS = "rank:2 step: 8 npu_status: 0 run_status: 0 data_aval: 1 data_status: 0 diff_time : 8004"

OF_MINDFORMERS: list[tuple[str, str, dict[str, Any]]] = [
    (STEP, "train.step", {"step": 2, "loss": 11.905, "global_norm": 45.702465, "tflops_per_npu": 171.176}),
    (" 0.0% | | 0.36029 samples/s/p 10:01:16 }", "train.progress", {"percent": 0.0, "left_text": "10:01:16"}),
    ("Current global norm [45.7] is greater equal than threshold 44.0, stop training...", "tre.thrown", {"norm": 45.7}),
    (
        "The global norm [45.7] of step 2 is still greater or equal than threshold 44.0, continue training.",
        "tre.again",
        {"step": 2, "norm": 45.7},
    ),
    ("Call barrier before throw TREError.", "tre.barrier", {}),
    ("All stream execution completed.", "tre.synchronised", {}),
    ("opt_global_step: 12, skip_data_grad_norm_threshold: 5.0, is_skip: [ True]", "skip.step", {"step": 12}),
    (
        "Current global norm [6.2] of step 12 has been 3 consecutive times greater than threshold: 5.0",
        "skip.repeated",
        {"step": 12, "times": 3},
    ),
    ("pipeline stages: 4 > 1, the loss on the last card is valid.", "train.last_stage_only", {"stages": 4}),
    ("......Saving ckpt......", "checkpoint.begin", {}),
    ("Finish saving ckpt of epoch 1 step 3 using 0.002 seconds", "checkpoint.saved", {"step_in_epoch": 3}),
    ("successfully sync saved checkpoint from step '16' to", "checkpoint.written", {"step": 16, "mode": "sync"}),
    ("Save checkpoint cost time: 0.021s.", "checkpoint.cost", {"seconds": 0.021}),
    ("The latest valid iteration is '16', get it from './output/x.txt'.", "checkpoint.latest", {"step": 16}),
    ("..........Loading Time Cost: 0.03235 s..........", "checkpoint.loaded", {"seconds": 0.03235}),
    ("Basic resume checkpoint: a-1_2.ckpt", "resume.base", {"path_text": "a-1_2.ckpt"}),
    ("Find resume-able checkpoints as follow:", "resume.candidates", {}),
    ("Get resume checkpoint: ./rank_0/a-1_2.ckpt", "resume.chosen", {"path_text": "./rank_0/a-1_2.ckpt"}),
    ("No checkpoint could be resumed.", "resume.nothing", {}),
    ("dataset skip 16 steps.", "resume.data_skipped", {"steps": 16}),
]
OF_OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    ("epoch: 1 step: 77, loss is 6.465892", "train.loss", {"step_in_epoch": 77, "loss": 6.465892}),
    ("Enter _tft_rebuild_groups", "tft.handler_begin", {"handler": "tft_rebuild_groups"}),
    ("rank:2, report group list: [0, 2]", "ttp.registered", {"rank": 2, "group": [0, 2]}),
    (f"status error, {STATUS}", "ttp.status_error", {"rank": 2, "step": 8, "data_aval": 1}),
    ("selected error ranks: [2], step: 10", "ttp.errors_selected", {"step": 10, "ranks": [2]}),
    ("nextState: STATE_OP_DUMP", "ttp.state", {"state": "DUMP"}),
    ("rank:0 set dump config step:10, repairId:1, optimidxs:[0], ranks:[[0]]", "ttp.dump_config", {"step": 10}),
    ("rank:0 reply dump result success, dump ret:0", "ttp.dump_result", {"rank": 0}),
    ("finish rename, rank:1", "ttp.renamed", {"rank": 1}),
    ("DumpCallback return TTP_OK", "ttp.dump_done", {"result": "TTP_OK"}),
    ("dp:[1, 3] has no complete data. ret:1", "ttp.dump_refused", {"dp": [1, 3]}),
    ("start notify all device stop...", "ttp.stop_begin", {}),
    ("notify all device stop & clean ok!", "ttp.env_cleared", {}),
    ("Start do retry repair", "ttp.repair_begin", {"repair": "retry"}),
    ("Start do arf repair", "ttp.repair_begin", {"repair": "arf"}),
    ("Controller:0 rollback success", "ttp.rollback_done", {"rank": 0}),
    ("do action report_result, arg=(0, 'Mindio do repair operation ok', {}, 'recover')", "ttp.result", {}),
]


def read(folder: Path, text: str) -> list[LogEvent]:
    path = folder / "excerpt.txt"
    path.write_text(text)
    return list(read_log(path, READERS))


@pytest.mark.parametrize(("line", "kind", "told"), OF_MINDFORMERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_line_of_mindformers_is_read_as_documents_quote_it(
    tmp_path: Path, prefix: str, line: str, kind: str, told: dict[str, Any]
) -> None:
    (event,) = read(tmp_path, f"{prefix}{line}\n")
    assert (event.kind, event.wall_ns) == (kind, None)
    assert told.items() <= ({"step": event.step, "rank": event.rank} | event.fields).items()


@pytest.mark.parametrize(("line", "kind", "told"), OF_OTHERS)
def test_a_line_of_mindspore_or_the_sdk_is_read_as_documents_quote_it(
    tmp_path: Path, line: str, kind: str, told: dict[str, Any]
) -> None:
    (event,) = read(tmp_path, f"{line}\n")
    assert (event.kind, event.wall_ns) == (kind, None)
    shown = {"step": event.step, "rank": event.rank} | event.fields
    assert {name: shown.get(name) for name in told} == told


def test_an_excerpt_of_bare_lines_is_read_whole(tmp_path: Path) -> None:
    lines = [line for line, _, _ in (*OF_MINDFORMERS, *OF_OTHERS) if not line.startswith("epoch: ")]
    path = tmp_path / "excerpt.txt"
    path.write_text("".join(f"{line}\n" for line in [STEP] * 60 + lines))
    scan = LogScan()
    assert len(list(read_log(path, READERS, scan=scan))) == 60 + len(lines)
    assert (scan.reader, scan.unknown) == ("quoted", 0)


WHOLE = "2026-11-21 01:28:53,952 - mindformers/log[mindformers/a.py:1] - INFO - .........Training Over!.............\n"
OF_WORKER = "epoch: 1 step: 1, loss is 0.5\n"


@pytest.mark.parametrize(("whole", "kind"), [(WHOLE, "train.phase"), (OF_WORKER, "train.loss")])
@pytest.mark.parametrize("line", ["nextState: STATE_OP_DUMP", "global_step: 3", "No checkpoint could be resumed."])
def test_a_message_alone_is_no_fact_in_the_log_of_a_program(tmp_path: Path, whole: str, kind: str, line: str) -> None:
    assert [event.kind for event in read(tmp_path, f"{line}\n{whole}{line}\n")] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "global_step: 3\ninitial step: 3\n",  # any script may print that
        "/job/output/checkpoint/rank_0/a-1_6.ckpt\n",
        '    logger.info("Call barrier before throw TREError.")\n    All stream execution completed.\n',
        "2026-11-21 01:28:53 root INFO nextState: STATE_OP_DUMP\n",
        "[INFO] 2026-11-21 nextState: STATE_OP_DUMP\n",
    ],
)
def test_what_may_be_another_programs_is_not_taken_for_a_quotation(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == []


def test_a_quoted_step_is_in_the_columns_of_losses(tmp_path: Path) -> None:
    path = tmp_path / "excerpt.txt"
    path.write_text(f"- INFO - {STEP}\n" * 3)
    columns = LossScanner().scan(path)
    assert (columns.step.tolist(), columns.loss.tolist()) == ([2, 2, 2], [11.905] * 3)


def test_a_log_that_is_followed_is_read_in_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for begin, kinds in (("", ["ttp.state"]), (OF_WORKER, ["train.loss"])):
        path.write_text(f"{begin}nextState: STATE_OP_DUMP\n")
        tail = LogTail(path.open("rb"), READERS, name="log")
        assert [event.kind for event in tail.new_events()] == kinds
        tail.close()
