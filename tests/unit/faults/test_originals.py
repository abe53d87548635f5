"""What was saved in a damaged checkpoint is read from the originals, as long as the damage lies in their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.checkpoints.file_content import ABSENT
from chaos.faults.checkpoints.originals import damaged_files, digest_there, state_as_saved
from chaos.history.reader import read_history
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.store.directory import RunDirectory, create_run
from tests.kit.runs.damage_stage import Stage, directories, files_of_rank_0


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "torch", "", clock=SYSTEM_CLOCK)


@pytest.mark.parametrize("kind", ["flip-checkpoint", "truncate-checkpoint", "partial-checkpoint", "stale-checkpoint"])
def test_a_damaged_file_is_read_as_it_was_saved(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    files_of_rank_0(stage)
    saved = read_saved_state(stage.job / "checkpoints" / "step-8.pt")
    _, shown = stage.damage()
    stage.landed(shown)
    run = owned.path.resolve()
    damaged = list(damaged_files(run, read_history(run / "history")))
    assert [(file.fault, file.rank, file.file, file.name) for file in damaged] == [
        ("hit", 0, "checkpoints/step-8.pt", "checkpoints/step-8.pt")
    ]
    assert state_as_saved(stage.job / "checkpoints" / "step-8.pt", run, damaged) == saved
    assert state_as_saved(stage.job / "checkpoints" / "step-4.pt", run, damaged) is None
    assert digest_there(stage.job / damaged[0].name) == shown["after"] != shown["before"]


@pytest.mark.parametrize("part", ["model", ".metadata"])
@pytest.mark.parametrize("kind", ["flip-checkpoint", "truncate-checkpoint", "remove-checkpoint", "stale-checkpoint"])
def test_a_directory_is_read_with_the_original_of_its_part(owned: RunDirectory, kind: str, part: str) -> None:
    where = "header" if part == ".metadata" else "data"
    stage = Stage(owned, kind, rank=1, part=part, where=where)
    directories(stage)
    path = stage.job / "ckpt" / "step_8" / ".metadata"
    saved = read_saved_state(path)
    stage.landed(stage.damage()[1])
    run = owned.path.resolve()
    damaged = list(damaged_files(run, read_history(run / "history")))
    left = {file for file in run.rglob("*") if file.is_file()}
    assert state_as_saved(path, run, damaged) == saved
    assert state_as_saved(path.parent.with_name("step_4") / ".metadata", run, damaged) is None
    assert {file for file in run.rglob("*") if file.is_file()} == left
    if kind != "stale-checkpoint":
        with pytest.raises(CheckpointError):
            read_saved_state(path)


def test_a_removed_file_is_absent(owned: RunDirectory) -> None:
    stage = Stage(owned, "remove-checkpoint")
    files_of_rank_0(stage)
    stage.landed(stage.damage()[1])
    run = owned.path.resolve()
    (removed,) = damaged_files(run, read_history(run / "history"))
    assert digest_there(stage.job / removed.name) == ABSENT


def test_a_renamed_file_is_looked_for_under_its_new_name(owned: RunDirectory) -> None:
    stage = Stage(owned, "rename-checkpoint")
    files_of_rank_0(stage)
    _, shown = stage.damage()
    stage.landed(shown)
    run = owned.path.resolve()
    (renamed,) = damaged_files(run, read_history(run / "history"))
    assert renamed.name == "checkpoints/step-16.pt"
    assert digest_there(stage.job / renamed.name) == shown["after"]


def test_a_file_that_was_put_back_is_not_damaged(owned: RunDirectory) -> None:
    stage = Stage(owned, "flip-checkpoint")
    files_of_rank_0(stage)
    shown, _ = stage.hit()
    stage.landed(shown)
    run = owned.path.resolve()
    assert list(damaged_files(run, read_history(run / "history"))) == []
