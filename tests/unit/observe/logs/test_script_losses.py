"""Losses that scripts print: shown as they are, and no step of the job is made of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.other_losses import counts
from chaos.observe.logs.reader import LogScan, built_in_readers, read_line, read_log
from chaos.observe.logs.tail import LogTail
from chaos.observe.logs.torch.script_log import ScriptLogReader

READER = ScriptLogReader(timezone.utc)


@pytest.mark.parametrize(
    ("line", "loss", "numbers"),
    [
        ("step 5 loss 0.123456", "0.123456", {"printed_step": 5}),
        ("step 0, loss: 10.899394989013672", "10.899394989013672", {"printed_step": 0}),
        ("step     1 | loss: 10.902682 | lr 1.6783e-06", "10.902682", {"printed_step": 1}),
        ("iter 0: loss 4.2279, time 4542.46ms", "4.2279", {"printed_step": 0}),
        ("Iteration 7/100: train loss=1e-3", "1e-3", {"printed_step": 7, "printed_of": 100}),
        ("Epoch 1/3, Step 100, Loss: 0.245, Val Acc: 92.1%", "0.245", {"epoch": 1, "printed_step": 100}),
        ("Epoch 1/10, Loss: 0.9184", "0.9184", {"epoch": 1}),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 1.359780", "1.359780", {"epoch": 1, "samples": 640}),
        ("Epoch: [0][ 10/782]\tTime  0.794 ( 1.044)\tLoss 6.0205e+00 (6.3747e+00)", "6.0205e+00", {"epoch": 0}),
        ("{'loss': 3.0288, 'grad_norm': 1.44, 'epoch': 0.01}", "3.0288", {"epoch": 0.01, "global_norm": 1.44}),
        ("{'loss': '3.41', 'learning_rate': '0.0002', 'epoch': '1', 'step': 7}", "3.41", {"printed_step": 7}),
        ("{'loss': nan, 'epoch': 0.01}", "nan", {}),
        (" 40%|## | 4/10 [00:01<00:01]\r          \r{'loss': 2.5, 'epoch': 1.0}", "2.5", {"epoch": 1.0}),
        ("Epoch 0: 1%| | 1/9 [00:01, v_num=0, loss=9.0]\rEpoch 0: 2%| | 2/9 [00:02, train_loss=8.5]", "8.5",
         {"printed_step": 2, "printed_of": 9}),
    ],
)  # fmt: skip
def test_a_usual_form_is_read_as_it_is_printed(line: str, loss: str, numbers: dict[str, Any]) -> None:
    event = READER.read(line)
    assert event is not None
    assert (event.kind, event.step, event.rank, event.fields["loss_text"]) == ("train.loss", None, None, loss)
    assert numbers.items() <= event.fields.items()


@pytest.mark.parametrize(
    "line",
    [
        "loss 0.5",
        "the loss at step 5 is 0.5",
        "step 5 took 3 s, loss function mse",
        "step 5 loss 0.5.1",
        "step 5 loss abc",
        "packet loss 3 %",
        "    print('step 5 loss 0.5')",
        "'step 5 loss 0.5'",
        "epoch 3: no loss",
        "{'loss': 2.5",
        "{'loss': 2.5, 'epoch': {'a': 1}}",
        "{'lossy': 2.5}",
        "Test Epoch: [1] Loss",
    ],
)
def test_other_text_with_the_word_is_none(line: str) -> None:
    assert READER.read(line) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("step 0: train loss 4.1938, val loss 4.2005", "train.evaluated"),
        ("{'eval_loss': 0.34, 'eval_runtime': 9.1, 'epoch': 1.0}", "train.evaluated"),
        ("{'train_runtime': 116.19, 'train_loss': 2.81, 'epoch': 0.15}", "train.summary"),
    ],
)
def test_an_evaluation_and_a_summary_are_no_loss_of_training(line: str, kind: str) -> None:
    event = READER.read(line)
    assert event is not None and event.kind == kind and "loss" not in event.fields


def test_no_check_takes_such_a_number_for_a_step_of_the_job(tmp_path: Path) -> None:
    """A script that counts from 0 would seem to have trained one step less."""
    path = tmp_path / "worker_0.log"
    path.write_text("iter 1: loss 4.2279, time 1ms\nepoch: 1 step: 2, loss is 0.5\n")
    events = list(read_log(path, built_in_readers(timezone.utc)))
    assert [event.kind for event in events] == ["train.loss", "train.loss"]
    assert not any(counts(event, 0) for event in events)


class OwnReader(LogReader):
    """Of a user who knows that the script counts from 0."""

    name = "own"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        return False

    def read(self, line: str) -> LogEvent | None:
        step = line.removeprefix("iter ").partition(":")[0]
        return LogEvent("train.step", step=int(step) + 1) if line.startswith("iter ") else None


def test_a_reader_of_the_users_own_comes_before_it(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_text("iter 0: loss 4.2, time 1ms\niter 1: loss 4.1, time 1ms\nstep 7 loss 0.5\n")
    scan = LogScan()
    events = list(read_log(path, [*built_in_readers(timezone.utc), OwnReader()], scan=scan))
    assert [(event.kind, event.step) for event in events] == [
        ("train.step", 1),
        ("train.step", 2),
        ("train.loss", None),
    ]
    assert scan.reader == "script"
    tail = LogTail(path.open("rb"), [*built_in_readers(timezone.utc), OwnReader()], name="log")
    assert [event.step for event in tail.new_events()] == [1, 2, None]
    tail.close()


def test_torchtitan_tells_a_step_of_the_job_and_its_time() -> None:
    begin = "[rank0]:[titan] 2025-12-17 01:18:26,708 - root - INFO - "
    line = f"{begin}step:  1  loss: 12.4153  grad_norm:  8.2782  memory: 87GiB"
    ((event, _),) = read_line(built_in_readers(timezone.utc), line)
    assert (event.kind, event.step, event.rank, event.wall_ns) == ("train.step", 1, None, 1_765_934_306_708_000_000)
    assert (event.fields["loss"], event.fields["global_norm"], event.fields["places"]) == (12.4153, 8.2782, 4)
