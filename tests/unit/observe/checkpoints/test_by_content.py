"""Checkpoints without telling names are found by their content, when they are finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.checkpoints.by_content import find_by_content, rank_in_path
from tests.kit.checkpoints.megatron_files import write_megatron
from tests.kit.checkpoints.torch_dcp import job_directory
from tests.kit.checkpoints.torch_save import TorchSave, floats, job_state
from tests.kit.npz import write_npz
from tests.unit.observe.ckpt_writer import CkptWriter
from tests.unit.observe.mindformers_files import write_iteration, write_safetensors


def found(root: Path) -> dict[str, tuple[int | None, int | None]]:
    """Paths below the root, with rank and step."""
    return {str(file.path.relative_to(root)): (file.rank, file.step) for file in find_by_content(root)}


def test_finished_files_of_every_format_are_found_and_nothing_else(tmp_path: Path) -> None:
    whole = TorchSave().write(tmp_path / "ckpt" / "step-8.pt", job_state(8)).read_bytes()
    (tmp_path / "ckpt" / "half.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "ckpt" / "step-8.tmp").write_bytes(whole)
    (tmp_path / "ckpt" / "notes.pt").write_text("no checkpoint")
    (tmp_path / "ckpt" / "link.pt").symlink_to(tmp_path / "ckpt" / "step-8.pt")
    TorchSave().write(tmp_path / "rank_1" / "last.ckpt", job_state(8))
    job_directory(8).write(tmp_path / "step_8")
    job_directory(4).write(tmp_path / "step_4").unlink()
    write_megatron(tmp_path / "megatron", 8, parts=1)
    write_safetensors(tmp_path / "model.safetensors", {"w": [1.0]})
    whole = write_npz(tmp_path / "rank_2" / "step_8.npz", 8).read_bytes()
    (tmp_path / "rank_2" / "half.npz").write_bytes(whole[: len(whole) // 2])
    assert found(tmp_path) == {
        "ckpt/step-8.pt": (None, None),
        "rank_1/last.ckpt": (1, None),
        "step_8/.metadata": (None, None),
        "megatron/iter_0000008/mp_rank_00/model_optim_rng.pt": (None, 8),
        "model.safetensors": (None, None),
        "rank_2/step_8.npz": (2, None),
    }


def test_what_has_a_name_of_mindspore_or_mindformers_is_left_to_the_search_by_name(tmp_path: Path) -> None:
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / "net-1_4.ckpt").write_bytes(CkptWriter().sample())
    write_iteration(tmp_path / "output", 4)
    assert found(tmp_path) == {}


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank_3/last.pt", 3),
        ("state-rank3.pt", 3),
        ("rank-12.pt", 12),
        ("step_8/rank_0/model.pt", 0),
        ("mp_rank_03/model.pt", None),
        ("frank_3.pt", None),
        ("rank_3x.pt", None),
        ("step_8.pt", None),
    ],
)
def test_the_rank_in_a_path(tmp_path: Path, path: str, rank: int | None) -> None:
    assert rank_in_path(tmp_path / path, tmp_path) == rank
    TorchSave().write(tmp_path / path, {"w": floats(1.0)})
    assert found(tmp_path) == {path: (rank, None)}
