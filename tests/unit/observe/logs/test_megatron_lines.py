"""Steps that Megatron and MindSpeed print: which loss is the step's own, and how exact it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone
from pathlib import Path

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.observe.logs.losses.loss_columns import LossColumns, LossScanner
from chaos.observe.logs.losses.mean_losses import MARKS, mean_losses
from chaos.observe.logs.torch.megatron_log import MegatronLogReader, places_of

READER = MegatronLogReader(timezone.utc)
STEP = (
    " [2026-04-28 00:00:0{second}] iteration {step:8d}/      12 | consumed samples: {samples:12d} | "
    "elapsed time per iteration (ms): 430.0 | learning rate: 1.342000E-04 | global batch size:     8 |{losses} "
    "loss scale: 1.0 | grad norm: 2.918 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def step_line(step: int, losses: str = " lm loss: 6.930000E-01 |") -> str:
    return STEP.format(second=step % 10, step=step, samples=8 * step, losses=losses)


def fields(losses: str) -> dict[str, object]:
    event = READER.read(step_line(5, losses))
    assert event is not None and (event.kind, event.step) == ("train.step", 5)
    return event.fields


def test_a_step_tells_its_loss_and_its_other_numbers() -> None:
    event = READER.read(step_line(5))
    assert event is not None
    assert (event.kind, event.step, event.rank) == ("train.step", 5, None)
    loss = {"loss_text": "6.930000E-01", "loss": 0.693, "places": 7, "lm_loss": 0.693}
    others = {"consumed_samples": 40, "step_ms": 430.0, "lr": 1.342e-4, "global_batch_size": 8, "loss_scale": 1.0}
    counted = {"global_norm": 2.918, "skipped_iterations": 0, "nan_iterations": 0}
    assert event.fields == loss | others | counted


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("6.930000E-01", 7),
        ("1.332803E+01", 5),
        ("2.000000E+00", 6),
        ("1.234567E+08", 0),
        ("0.693", 3),
        ("7", 0),
        ("NAN", -1),
        ("inf", -1),
    ],
)
def test_the_digits_after_the_point_are_those_of_the_number_without_its_exponent(text: str, places: int) -> None:
    assert places_of(text) == places


@pytest.mark.parametrize(
    ("losses", "loss"),
    [
        (" lm loss: 6.9E-01 | mtp_1 loss: 7.0E-01 | load_balancing_loss: 1.0E+00 |", 0.69),
        (" loss: 1.9E-01 |", 0.19),
        (" dpo loss: 5.0E-01 | load_balancing_loss: 1.0E+00 |", 0.5),
        (" lm loss: INF |", float("inf")),
    ],
)
def test_the_loss_of_the_model_is_told_from_its_auxiliary_losses(losses: str, loss: float) -> None:
    assert fields(losses)["loss"] == loss


@pytest.mark.parametrize(
    "losses", ["", " load_balancing_loss: 1.0E+00 |", " a loss: 1.0E+00 | b loss: 2.0E+00 |", " lm loss: x |"]
)
def test_a_line_without_the_loss_of_the_model_has_none(losses: str) -> None:
    assert "loss" not in fields(losses)


def test_half_a_line_tells_only_what_is_whole_in_it() -> None:
    line = step_line(5)
    event = READER.read(line[: line.index("6.93") + 4])
    assert event is not None and event.step == 5
    assert "loss" not in event.fields and event.fields["global_batch_size"] == 8


def scan(path: Path, lines: Sequence[str]) -> LossColumns | None:
    path.write_text("".join(f"{line}\n" for line in lines))
    return mean_losses(LossScanner(others=MARKS, times=False).scan(path))


def test_where_each_step_has_a_line_the_losses_are_columns(tmp_path: Path) -> None:
    columns = scan(tmp_path / "log", ["> initializing", *(step_line(step) for step in (3, 4, 5)), "done"])
    assert columns is not None
    assert (columns.line.tolist(), columns.step.tolist()) == ([2, 3, 4], [3, 4, 5])
    assert (columns.loss.tolist(), columns.places.tolist()) == ([0.693] * 3, [7] * 3)
    assert columns.present.tolist() == [True] * 3


@pytest.mark.parametrize("steps", [(2, 4, 6), (1, 2, 4), (5,), (1, 10, 20)])
def test_a_mean_of_several_steps_is_no_loss_of_a_step(tmp_path: Path, steps: tuple[int, ...]) -> None:
    """``--log-interval 2``: after a restart from step 3 the mean at step 4 would be that of step 4 alone."""
    columns = scan(tmp_path / "log", [step_line(step) for step in steps])
    assert columns is not None and columns.step.tolist() == []


@pytest.mark.parametrize(
    ("steps", "own"),
    [((1, 2, 3, 4), [1, 3, 4]), ((5, 6, 7), [5, 7]), ((1, 2, 3, 3, 4, 5), [1, 3, 3, 5]), ((1, 2), [1])],
)
def test_the_second_line_of_a_process_is_a_mean_of_two_steps_from_core_v0_16_on(
    tmp_path: Path, steps: tuple[int, ...], own: list[int]
) -> None:
    """It has microseconds. After a restart the mean would be that of other steps than in a fault-free run."""
    lines = [step_line(step).replace("] iteration", ".000000] iteration") for step in steps]
    columns = scan(tmp_path / "log", lines)
    assert columns is not None and columns.step.tolist() == own


def test_a_restart_in_the_same_log_goes_back(tmp_path: Path) -> None:
    columns = scan(tmp_path / "log", [step_line(step) for step in (1, 2, 3, 3, 4)])
    assert columns is not None and columns.step.tolist() == [1, 2, 3, 3, 4]


def test_a_step_without_a_loss_is_missing_and_not_a_loss(tmp_path: Path) -> None:
    columns = scan(tmp_path / "log", [step_line(1), step_line(2, ""), step_line(3)])
    assert columns is not None and columns.step.tolist() == [1, 3]


def test_a_log_of_another_program_has_no_such_losses(tmp_path: Path) -> None:
    assert scan(tmp_path / "log", ["epoch: 1 step: 3, loss is 0.5", "note | consumed samples: 3"]) is None


def test_torchtitan_counts_in_the_same_way(tmp_path: Path) -> None:
    line = (
        "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step: {:2d}  loss: 12.2254  memory: 27.34GiB(28.78%)"
    )
    assert (columns := scan(tmp_path / "log", [line.format(step) for step in (1, 2, 3)])) is not None
    assert (columns.step.tolist(), columns.places.tolist()) == ([1, 2, 3], [4, 4, 4])
    assert (columns := scan(tmp_path / "log", [line.format(step) for step in (1, 10)])) is not None
    assert columns.step.tolist() == []


def test_the_losses_of_a_run_are_read_from_the_log_of_the_rank_that_prints_them(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "train"
    logs.mkdir(parents=True)
    (logs / "worker_0.log").write_text("> initializing\n")
    (logs / "worker_1.log").write_text("".join(f"[default1]:{step_line(step)}\n" for step in (1, 2)))
    artifacts = Artifacts(tmp_path, None)
    ((_, none),) = artifacts.losses("train", 0)
    ((name, columns),) = artifacts.losses("train", 1)
    assert (none.step.tolist(), name, columns.step.tolist()) == ([], "logs/train/worker_1.log", [1, 2])
    assert artifacts.signs("train", 1) == []
