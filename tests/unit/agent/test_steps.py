"""The job-wide step that a training begins after, where several steps come to one update of the optimizer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.earlier_saves import Save
from chaos.agent.record import Record
from chaos.agent.steps import steps_done
from chaos.agent.training import Training


def done(
    record: Record, updates: int, *, every: int = 2, position: int = 0, loaded: int | None = None, **arguments: Any
) -> int:
    training = Training(record, Barriers(record, None, []), Digests(record, 0), steps_per_update=every)
    training.loaded_step = loaded
    dataset = SimpleNamespace(get_init_step=lambda: position)
    fields = {"cur_step_num": 0, "batch_num": 12, "train_dataset": dataset, **arguments}
    return steps_done(updates, SimpleNamespace(**fields), training)


def test_where_every_step_makes_an_update_the_optimizer_counts_the_steps(record: Record) -> None:
    assert done(record, 5, every=1, position=3, cur_step_num=2) == 5


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ({}, 6),
        ({"position": 6}, 6),
        ({"position": 7}, 7),
        ({"position": 2, "batch_num": 5}, 7),  # counted within an epoch
        ({"position": 6, "loaded": 7}, 6),  # the data goes on at the last update, whatever the file was of
        ({"loaded": 7}, 7),
        ({"loaded": 1}, 6),
        ({"cur_step_num": 7}, 7),
        ({"cur_step_num": 0, "batch_num": 7}, 7),  # each epoch is a training of its own
        ({"position": 1, "batch_num": 1}, 6),  # every step is an epoch, so the position names none
        ({"position": 7, "batch_num": 1}, 7),
    ],
    ids=str,
)
def test_within_an_accumulation_data_file_and_loop_tell_the_step(
    record: Record, told: dict[str, Any], step: int
) -> None:
    assert done(record, 3, **told) == step


@pytest.mark.parametrize(
    ("updates", "every", "step"),
    [(0, 1, 6), (5, 1, 5), (0, 2, 1)],
    ids=["the optimizer was not loaded", "it was", "it counts updates"],
)
def test_a_count_that_was_not_restored_leaves_the_step_to_the_file(
    record: Record, tmp_path: Path, updates: int, every: int, step: int
) -> None:
    saves = {str(tmp_path / "x"): Save(6)}
    training = Training(record, Barriers(record, None, []), Digests(record, 0), every, save_of=saves.get)
    training.load(str(tmp_path / "x.ckpt"), dict)
    dataset = SimpleNamespace(get_init_step=lambda: 1)
    assert steps_done(updates, SimpleNamespace(cur_step_num=0, batch_num=12, train_dataset=dataset), training) == step


def test_a_dataset_without_a_position_tells_nothing(record: Record) -> None:
    assert done(record, 3, train_dataset=object(), loaded=7) == 7
