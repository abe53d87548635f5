"""Lines that MindFormers prints for each step. The first of each kind are of real logs or of its documents."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.mindformers_log import MindFormersLogReader

AT = "2026-11-21 01:27:12,420"
PRINTED = f"{AT} - mindformers/job/run/output/log[mindformers/core/callback/callback.py:747] - INFO - "
OLD = f"{AT} - [mindformers/core/callback/callback.py:529] - INFO - "
WRITTEN = f"[INFO] {AT} [/opt/mindformers/core/callback/callback.py:334] print_output_info: "


def read(line: str) -> LogEvent | None:
    return MindFormersLogReader(timezone.utc).read(line)


@pytest.mark.parametrize("prefix", [PRINTED, OLD, WRITTEN])
@pytest.mark.parametrize(
    ("message", "step", "fields"),
    [
        (
            "{ Epoch:[  2/  2], step:[    1/    8], loss:[1.357975/1.357975], per_step_time: 142ms, lr: 0.01, "
            "overflow cond: False, loss_scale: unavailable, global_norm: None",
            9,
            {"loss_text": "1.357975", "loss": 1.357975, "places": 6, "step_ms": 142.0, "lr": 0.01},
        ),
        (
            "{ Epoch:[  1/  1], step:[   77/10000], loss: 10.649, lm_loss: 10.6, per_step_time: 3ms, lr: 1e-05, "
            "overflow cond: False, loss_scale: 1.0, global_norm: [10.579812], train_throughput_per_npu: 2.896T",
            77,
            {"loss_text": "10.649", "loss": 10.649, "places": 3, "global_norm": 10.579812, "loss_scale": 1.0},
        ),
        (
            "{ step:[    2/   10], consumed_samples: 16, global_batch_size: 8, loss:  11.755612, per_step_time:    "
            "710ms, load_balancing_loss: 0.1, lr: 1.000000e-05, grad_norm:  19.926786, throughput:  25.92T }",
            2,
            {"loss_text": "11.755612", "loss": 11.755612, "global_norm": 19.926786, "step_ms": 710.0},
        ),
        (
            "{ step:[    2/   10], consumed_samples: 16, global_batch_size: 8, "
            "loss: N/A (non-last PP stage, refer to last stage for real loss), per_step_time: 1ms }",
            2,
            {"loss_text": None, "loss": None, "places": -1},
        ),
        (
            "{ step:[    2/   10], consumed_samples: None, global_batch_size: None, "
            "loss: N/A (non-last PP stage, refer to last stage for real loss), per_step_time: 1ms, grad_norm: NaN }",
            2,
            {"loss_text": None, "loss": None, "step_ms": 1},
        ),
        (
            "{ step:[    3/   10], consumed_samples: 24, global_batch_size: 8, "
            f"loss: {3.3e38:10.6f}, per_step_time:    1ms, grad_norm: {1e40:10.6f} }}",
            3,
            {"loss": 3.3e38, "places": 6, "global_norm": 1e40},
        ),
        (
            f"{{ Epoch:[  1/  1], step:[    3/    8], loss:[{1e300:5.3f}/{1e308:5.3f}], per_step_time: 1ms",
            3,
            {"loss": 1e300, "places": 3},
        ),
        ("{ Epoch:[  1/  1], step:[    3/    8], loss: -0.500, per", 3, {"loss": -0.5, "places": 3}),
        ("{ Epoch:[  1/  1], step:[    3/    8], loss: inf, per", 3, {"loss": float("inf"), "places": -1}),
    ],
)
def test_the_line_of_a_step(prefix: str, message: str, step: int, fields: dict[str, Any]) -> None:
    event = read(prefix + message)
    assert event is not None
    assert (event.kind, event.step) == ("train.step", step)
    assert {name: event.fields[name] for name in fields} == fields
    assert (
        event.wall_ns == round(datetime(2026, 11, 21, 1, 27, 12, tzinfo=timezone.utc).timestamp()) * 10**9 + 420 * 10**6
    )


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("form", ["loss: %5.3f, ", "loss:[%5.3f/%5.3f], ", "loss: %5.6f, ", "loss:[%5.6f/%5.6f], "])
@pytest.mark.parametrize(
    ("loss", "mean"),
    [(NAN, NAN), (1.25, NAN), (INF, INF), (INF, NAN), (-INF, NAN), (0.5, INF), (-0.5, -INF), (2.5, 3.5)],
)
def test_a_loss_that_is_no_number_is_read_as_it_is_padded(form: str, loss: float, mean: float) -> None:
    """The vendor's own forms: five characters wide, so ``nan`` and ``inf`` have blanks before them."""
    printed = form % ((loss, mean) if form.count("%") > 1 else loss)
    event = read(f"{PRINTED}{{ Epoch:[  1/  1], step:[    3/    8], {printed}per_step_time: 1ms, lr: 1e-05")
    assert event is not None
    assert (event.kind, event.step, repr(event.fields["loss"])) == ("train.step", 3, repr(loss))


@pytest.mark.parametrize(
    "message",
    [
        "{ Epoch:[  1/  1], step:[    3/    8], loss: 1.5x3, per_step_time: 1ms",
        "{ Epoch:[  1/  1], step:[    3/    8], loss: 1.53",
        "{ Epoch:[  1/  1], step:[    0/    8], loss: 1.530, per_step_time: 1ms",
        "{ Epoch:[  1/  1], step:[    3/    8], los{ Epoch:[  1/  1], step:[    4/    8], loss: 1.530, per",
        "see { Epoch:[  1/  1], step:[    3/    8], loss: 1.530, per",
    ],
)
def test_a_damaged_line_is_none(message: str) -> None:
    assert read(PRINTED + message) is None


def test_the_bar_of_the_progress_is_known() -> None:
    event = read(f"{PRINTED}   81.2% |████████          | 31.57 samples/s/p  0:00:01 }}")
    assert event is not None
    assert event.kind == "train.progress"


@pytest.mark.parametrize(
    ("message", "kind", "step"),
    [
        ("successfully sync saved checkpoint from step '16' to './out'.", "checkpoint.written", 16),
        ("Get resume checkpoint: ./output/checkpoint/rank_0/a-1_2.ckpt", "resume.chosen", None),
        ("No checkpoint could be resumed.", "resume.nothing", None),
        ("pipeline stages: 4 > 1, the loss on the last card is valid.", "train.last_stage_only", None),
    ],
)
def test_checkpoints_and_resuming(message: str, kind: str, step: int | None) -> None:
    event = read(PRINTED + message)
    assert event is not None
    assert (event.kind, event.step) == (kind, step)


def test_a_line_of_another_program_is_none() -> None:
    assert read("epoch: 1 step: 77, loss is 6.465892") is None
    assert read("step:[ 1/2], loss: 1.0, ") is None
