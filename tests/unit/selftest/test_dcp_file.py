"""Values in directories of torch.distributed.checkpoint are changed as another state would have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint import read_checkpoint
from chaos.selftest.dcp_file import Change, dcp_stored
from chaos.selftest.defect import NothingToMutate
from tests.kit.checkpoints.torch_dcp import job_directory

PART = "step-8/__1_0.distcp"


def digests(run_dir: Path) -> dict[str, str]:
    """The digests of a directory whose every CRC is right."""
    checkpoint = read_checkpoint(run_dir / "job/checkpoints/step-8/.metadata")
    assert checkpoint.crc == "verified"
    return {name: tensor.digest for name, tensor in checkpoint.tensors.items()}


def changed(run_dir: Path, change: Change) -> set[str]:
    job_directory(8).write(run_dir / "job/checkpoints/step-8")
    before = digests(run_dir)
    dcp_stored(PART, change)(run_dir)
    after = digests(run_dir)
    return {name for name in before if before[name] != after[name]}


def test_the_values_of_a_rank_change_and_their_crc_with_them(tmp_path: Path) -> None:
    names = changed(tmp_path, lambda values: tuple(-value for value in values))
    assert len(names) == 3, "the weight, its moment, and the count that this rank has saved"


def test_a_change_may_choose_tensors_by_their_values(tmp_path: Path) -> None:
    (name,) = changed(tmp_path, lambda values: (0.0,) * len(values) if values == (8.0,) else values)
    assert "step" in name


def test_what_changes_nothing_is_no_defect(tmp_path: Path) -> None:
    with pytest.raises(NothingToMutate, match="no value in"):
        changed(tmp_path, lambda values: values)
    with pytest.raises(NothingToMutate, match="step-9"):
        dcp_stored("step-9/*.distcp", lambda values: values)(tmp_path)
