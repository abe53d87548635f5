"""Checkpoint files are found by every name that MindSpore and MindFormers give them, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.checkpoints.layout import CheckpointFile, find_checkpoints, find_temporary_directories


def make(root: Path, name: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ttp_saved_checkpoints-step_5/rank_2/ttp_rank_2-1_5.ckpt", (2, 1, 5, 5, False, "end-of-life", 2)),
        ("ttp_saved_checkpoints-step_5_tmp/rank_0/ttp_rank_0-1_5.ckpt", (0, 1, 5, 5, True, "end-of-life", 0)),
        ("ttp_saved_checkpoints-step_5_tmp/rank_0/ttp_rank_0-1_5.tmp", (0, 1, 5, 5, True, "end-of-life", 0)),
        ("tft_saved_checkpoints-step_12/rank_3/ttp_rank_3-2_4.ckpt", (3, 2, 4, 12, False, "end-of-life", 3)),
        ("checkpoint/rank_2/llama2_13b_rank_2-5_1.ckpt", (2, 5, 1, None, False, "either", 2)),
        ("checkpoint/rank_2/llama2_13b_rank_2_1-5_1.safetensors", (2, 5, 1, None, False, "either", 2)),
        ("checkpoint/rank_2/llama_rank_7-5_1.ckpt", (2, 5, 1, None, False, "either", 7)),
        ("checkpoints/rank_1/mlp-1_20.ckpt", (1, 1, 20, None, False, "periodic", None)),
        ("checkpoints/rank_1/mlp_1-1_20.ckpt", (1, 1, 20, None, False, "periodic", None)),
        ("checkpoints/rank_1/mlp-1_20.tmp", (1, 1, 20, None, True, "periodic", None)),
        ("checkpoint_network/rank_1/tiny_rank_1-network-1_4.ckpt", (1, 1, 4, None, False, "either", 1)),
        ("mindformers_rank_3-10_1.safetensors", (3, 10, 1, None, False, "either", 3)),
        ("ckpt/mindformers_rank_3_2-10_1.tmp", (3, 10, 1, None, True, "either", 3)),
        ("weights/tiny_rank_3-trainable_params-1_4.ckpt", (3, 1, 4, None, False, "either", 3)),
        ("ckpt/group_0/mlp-1_20.ckpt", (None, 1, 20, None, False, "either", None)),
        ("rank_x/mlp_1-1_2.ckpt", (None, 1, 2, None, False, "either", None)),
        ("ttp_saved_checkpoints-step_5/ttp_rank_2-1_5.ckpt", (2, 1, 5, 5, False, "end-of-life", 2)),
        ("ttp_saved_checkpoints-step_5_tmp/ttp_rank_2-1_5.ckpt", (2, 1, 5, 5, True, "end-of-life", 2)),
        ("iteration_00000008/adapter.safetensors", (None, 1, 8, None, False, "either", None)),
        ("iteration_00000008/tiny_rank_1.safetensors", (1, 1, 8, None, False, "either", 1)),
    ],
)
def test_a_checkpoint_is_described_by_its_path(tmp_path: Path, name: str, expected: tuple[object, ...]) -> None:
    path = make(tmp_path, name)
    assert find_checkpoints(tmp_path) == [CheckpointFile(path, *expected)]  # type: ignore[arg-type]


def test_other_files_are_left_out(tmp_path: Path) -> None:
    for name in (
        "rank_0/meta.json",
        "rank_0/mlp-graph.meta",
        "strategy/ckpt_strategy_rank_0.ckpt",
        "rank_0/mlp-1_2.ckpt.bak",
        "latest.ckpt",
        "mlp-1.ckpt",
        "tiny_rank_0.safetensors",
        "iteration_00000008/common.json",
        "iteration_00000008/model-0000000-0000001.tmp.gz",
    ):
        make(tmp_path, name)
    (tmp_path / "rank_0" / "directory-1_2.ckpt").mkdir()
    assert find_checkpoints(tmp_path) == []
    assert find_checkpoints(tmp_path / "missing") == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", "rank_0/mlp-1_1.ckpt")
    inside = make(tmp_path / "job", "checkpoints/rank_0/mlp-1_2.ckpt")
    inside.with_name("mlp-1_3.ckpt").symlink_to(outside)
    (tmp_path / "job" / "rank_0").symlink_to(outside.parent, target_is_directory=True)
    assert [checkpoint.path for checkpoint in find_checkpoints(tmp_path / "job")] == [inside]


def test_directories_that_were_never_renamed_are_found_even_when_empty(tmp_path: Path) -> None:
    (tmp_path / "a" / "ttp_saved_checkpoints-step_5_tmp").mkdir(parents=True)
    (tmp_path / "ttp_saved_checkpoints-step_6").mkdir()
    assert find_temporary_directories(tmp_path) == [tmp_path / "a" / "ttp_saved_checkpoints-step_5_tmp"]
