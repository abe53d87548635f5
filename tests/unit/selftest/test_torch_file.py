"""Files of ``torch.save`` are changed by hand as the reader sees it, and a change that changes nothing says so."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.selftest.defect import NothingToMutate
from chaos.selftest.torch_file import MOMENTS, STATE, STEPS, TorchFile, slot, torch_stored, weight
from tests.kit.checkpoints.torch_save import TorchSave, floats, scalar

NAME = "rank_1/step-4.pt"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run with one checkpoint, whose state is in the order of the selftest's own script."""
    for step in (2, 4):
        weights = {name: floats(1.0 * step, 2.0 + number) for number, name in enumerate("abcd")}
        slots = {
            number: {"step": scalar(step), "exp_avg": floats(0.1 * step, 3.0), "exp_avg_sq": floats(0.2 * step, 4.0)}
            for number in range(4)
        }
        optimizer = {"state": slots, "param_groups": [{"lr": 0.1, "params": [0, 1, 2, 3]}]}
        TorchSave().write(
            tmp_path / f"job/checkpoints/rank_1/step-{step}.pt", {"model": weights, "optimizer": optimizer}
        )
    return tmp_path


def digests(run_dir: Path, name: str = NAME) -> dict[str, str]:
    tensors = read_checkpoint(run_dir / "job/checkpoints" / name).tensors
    return {tensor: content.digest for tensor, content in tensors.items()}


def changed(run_dir: Path, change: Callable[[TorchFile], object]) -> set[str]:
    """The tensors of the file that a change changes. The reader looks at every CRC."""
    before = digests(run_dir)
    torch_stored(NAME, change)(run_dir)
    after = digests(run_dir)
    return {name for name in before if before[name] != after.get(name)}


def clear_counters(file: TorchFile) -> None:
    for number in STEPS:
        file.clear(number)


def test_each_number_is_that_of_the_tensor_it_names(run_dir: Path) -> None:
    (one,) = changed(run_dir, lambda file: file.flip_bit(weight(2), 3))
    assert one.endswith("c")
    (one,) = changed(run_dir, lambda file: file.clear(slot("exp_avg_sq", 3)))
    assert "exp_avg_sq" in one and "3" in one
    assert len(changed(run_dir, clear_counters)) == 4
    assert len(MOMENTS) == 8


def test_values_of_another_file_are_taken(run_dir: Path) -> None:
    older = TorchFile(run_dir / "job/checkpoints/rank_1/step-2.pt")
    assert len(changed(run_dir, lambda file: file.take(STATE, older))) == 16
    assert digests(run_dir) == digests(run_dir, "rank_1/step-2.pt")


def test_a_part_is_lost_with_its_name_or_with_its_values(run_dir: Path) -> None:
    assert all("exp_avg." in name for name in changed(run_dir, lambda file: file.rename("exp_avg")))
    torch_stored(NAME, lambda file: file.remove(weight(0)))(run_dir)
    with pytest.raises(CheckpointError, match="missing"):
        read_checkpoint(run_dir / "job/checkpoints" / NAME)


def test_the_number_of_the_step_is_that_of_torchs_pickle(tmp_path: Path) -> None:
    path = tmp_path / "job/checkpoints/one.pt"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one/data.pkl", pickle.dumps({"step": 4, "model": {}}, protocol=2))
    torch_stored("one.pt", lambda file: file.set_step(9))(tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("one/data.pkl") == pickle.dumps({"step": 9, "model": {}}, protocol=2)


@pytest.mark.parametrize(
    ("pattern", "change", "why"),
    [
        ("rank_9/*.pt", lambda file: file.clear(0), "no checkpoint rank_9"),
        (NAME, lambda file: None, "is as it was"),
        (NAME, lambda file: file.set_step(9), "is as it was"),
        (NAME, lambda file: file.content(99), "0 members data/99"),
    ],
)
def test_what_cannot_be_changed_says_so(
    run_dir: Path, pattern: str, change: Callable[[TorchFile], object], why: str
) -> None:
    with pytest.raises(NothingToMutate, match=why):
        torch_stored(pattern, change)(run_dir)
