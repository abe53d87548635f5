"""Damage to files of ``numpy.savez``: found by the rank's own record, in the content, with evidence, and put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.kind import FaultMissed
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.store.directory import RunDirectory, create_run
from tests.kit.npz import archive, job_arrays, write_npz
from tests.kit.runs.damage_stage import Stage
from tests.unit.faults.test_damaging_torch_files import KINDS

NEWEST = "saved/step_8.npz"


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "npz", "", clock=SYSTEM_CLOCK)


def saves(stage: Stage) -> None:
    """What a script of numpy leaves: rank 0 saves for all, under names of its own."""
    for step in (4, 8):
        stage.saved(write_npz(stage.job / "saved" / f"step_{step}.npz", step), step)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_file_that_the_rank_has_recorded_is_hit_and_put_back(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    saves(stage)
    before = stage.files()
    shown, between = stage.hit()
    assert (shown["file"], shown["step"]) == (NEWEST, 8)
    assert {name for name in before if before[name] != between.get(name)} == {NEWEST}


@pytest.mark.parametrize(
    ("kind", "parameters", "problem"),
    [
        ("flip-checkpoint", {}, "the content was changed"),
        ("flip-checkpoint", {"where": "header"}, "is named as a file of numpy.savez"),
        ("truncate-checkpoint", {}, "the zip archive has no end"),
        ("partial-checkpoint", {}, "the zip archive has no end"),
    ],
)
def test_a_damaged_file_is_damaged_beyond_doubt(
    owned: RunDirectory, tmp_path: Path, kind: str, parameters: dict[str, Any], problem: str
) -> None:
    stage = Stage(owned, kind, **parameters)
    saves(stage)
    (tmp_path / "left.npz").write_bytes(stage.hit()[1][NEWEST])
    with pytest.raises(CheckpointError, match=problem) as caught:
        read_checkpoint(tmp_path / "left.npz")
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_a_stale_file_is_sound_and_holds_the_older_step(owned: RunDirectory, tmp_path: Path) -> None:
    stage = Stage(owned, "stale-checkpoint")
    saves(stage)
    (tmp_path / "left.npz").write_bytes(stage.hit()[1][NEWEST])
    assert read_checkpoint(tmp_path / "left.npz").numbers == {"step_num": 4}


def test_the_values_of_a_compressed_file_are_missed_with_the_reason(owned: RunDirectory) -> None:
    """A bit of compressed content is no bit of a value: most changes of it cannot be loaded at all."""
    stage = Stage(owned, "flip-checkpoint")
    path = write_npz(stage.job / "saved" / "step_8.npz", 8)
    path.write_bytes(archive(job_arrays(8), 8))
    stage.saved(path, 8)
    with pytest.raises(FaultMissed, match="holds no floating-point values that lie in order"):
        stage.kind.undo_steps("hit", [stage.victim])
