"""MindFormers' records beside its checkpoints are read strictly: what cannot be true is an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.mindformers_records import (
    LastSaved,
    Storage,
    read_common,
    read_meta,
    read_metadata,
    read_tracker,
)

Reader = Callable[[Path], object]


def test_sound_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text('{"last_epoch": 5, "last_step": 1, "last_ckpt_file": "llama_rank_0-5_1.ckpt"}')
    assert read_meta(path) == LastSaved(5, 1, "llama_rank_0-5_1.ckpt")
    path.write_text('{"epoch_num": 2, "step_num": 16, "global_step": 15, "loss_scale": NaN, "data_plan_state": []}')
    assert (read_common(path).step, read_common(path).numbers["global_step"]) == (16, 15)
    path.write_text('{"global_step": 15, "step_num": null}')
    assert read_common(path).step == 15
    part = '[{"file_name": "a-model-0000000-0000002.safetensors", "storage_rank": 0, "rank_group": [0]}]'
    path.write_text(f'{{"state_dict_metadata": {{}}, "storage_data": {{"x": {part}, "y": {part}}}}}')
    name = "a-model-0000000-0000002.safetensors"
    assert read_metadata(path) == Storage({name: 2}, {name: 0}, frozenset())
    path.write_text("16\n")
    assert read_tracker(path) == 16


@pytest.mark.parametrize(
    ("reader", "text", "problem"),
    [
        (read_meta, "", "not sound JSON"),
        (read_meta, '{"last_epoch": 5, "last_', "not sound JSON"),
        (read_meta, "[]", "not a table"),
        (read_meta, '{"last_epoch": true, "last_step": 1, "last_ckpt_file": "a"}', "must be whole numbers"),
        (read_meta, '{"last_epoch": 1, "last_step": 1}', "not the name of a file"),
        (read_meta, '{"last_epoch": 1, "last_step": 1, "last_ckpt_file": "../../a"}', "not the name of a file"),
        (read_common, "{}", "nobody knows which step"),
        (read_common, '{"step_num": 8.0}', "must be a whole number"),
        (read_common, '{"step_num": -8}', "must be a whole number"),
        (read_common, "\0" * 40, "not sound JSON"),
        (read_metadata, "{}", "is not there"),
        (read_metadata, '{"storage_data": {"x": []}}', "names no file for 'x'"),
        (read_metadata, '{"storage_data": {"x": [{"file_name": "/etc/passwd"}]}}', "names no file"),
        (read_tracker, "", "is no iteration"),
        (read_tracker, "release", "is no iteration"),
        (read_tracker, "-1", "is no iteration"),
        (read_tracker, "8" * 2000, "is larger than"),
    ],
)
def test_what_cannot_be_true_is_an_error_that_names_the_file(
    reader: Reader, text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "record"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=problem) as caught:
        reader(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("reader", [read_meta, read_common, read_metadata, read_tracker])
def test_a_record_that_is_missing_or_a_link_is_an_error(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="No such file"):
        reader(tmp_path / "missing")
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="links are not followed"):
        reader(tmp_path / "link")
