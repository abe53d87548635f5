"""Damage to checkpoints of PyTorch: found by the rank's own record, in the content, with evidence, and put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.kind import FaultMissed
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.store.directory import RunDirectory, create_run
from tests.kit.checkpoints.megatron_files import TRACKER, write_megatron
from tests.kit.checkpoints.torch_save import TorchSave, floats, job_state
from tests.kit.runs.damage_stage import Stage, directories, files_of_rank_0

NO_JOB: Any = None
KINDS = (
    "truncate-checkpoint",
    "flip-checkpoint",
    "partial-checkpoint",
    "stale-checkpoint",
    "rename-checkpoint",
    "remove-checkpoint",
)


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "torch", "", clock=SYSTEM_CLOCK)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_file_that_the_rank_has_recorded_is_hit_and_put_back(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    files_of_rank_0(stage)
    before = stage.files()
    shown, between = stage.hit()
    newest = "checkpoints/step-8.pt"
    assert (shown["file"], shown["step"]) == (newest, 8)
    assert {name for name in before if before[name] != between.get(name)} == {newest}
    assert shown.get("older") == ("checkpoints/step-4.pt" if kind == "stale-checkpoint" else None)
    assert shown.get("renamed") == ("checkpoints/step-16.pt" if kind == "rename-checkpoint" else None)


def test_a_flipped_bit_lies_in_a_tensor_and_only_the_crc_sees_it(owned: RunDirectory, tmp_path: Path) -> None:
    stage = Stage(owned, "flip-checkpoint")
    files_of_rank_0(stage)
    whole = stage.files()["checkpoints/step-8.pt"]
    changed = stage.hit()[1]["checkpoints/step-8.pt"]
    (at,) = [place for place, (old, new) in enumerate(zip(whole, changed, strict=True)) if old != new]
    assert (whole[at] ^ changed[at]).bit_count() == 1
    places = read_checkpoint(stage.job / "checkpoints/step-8.pt").places.values()
    assert any(place.at <= at < place.end for place in places)
    (tmp_path / "flipped.pt").write_bytes(changed)
    with pytest.raises(CheckpointError, match="the content was changed"):
        read_checkpoint(tmp_path / "flipped.pt")


@pytest.mark.parametrize("kind", ["truncate-checkpoint", "partial-checkpoint"])
def test_what_is_left_of_a_file_is_damaged_beyond_doubt(owned: RunDirectory, tmp_path: Path, kind: str) -> None:
    stage = Stage(owned, kind)
    files_of_rank_0(stage)
    (tmp_path / "left.pt").write_bytes(stage.hit()[1]["checkpoints/step-8.pt"])
    with pytest.raises(CheckpointError, match="the zip archive has no end") as caught:
        read_checkpoint(tmp_path / "left.pt")
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_a_rank_that_has_saved_nothing_is_not_hit(owned: RunDirectory) -> None:
    stage = Stage(owned, "remove-checkpoint", rank=1)
    files_of_rank_0(Stage(owned, "remove-checkpoint"))
    with pytest.raises(FaultMissed, match=r"rank 1 has no checkpoint below .*job that could be damaged"):
        stage.kind.undo_steps("hit", [stage.victim])


def test_a_file_in_an_unknown_format_is_hit_by_its_record_but_no_bit_of_its_values(owned: RunDirectory) -> None:
    stage = Stage(owned, "remove-checkpoint")
    path = stage.job / "state.msgpack"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x81\xa1w" * 50)
    stage.saved(path, 8)
    assert stage.hit()[0]["step"] == 8
    flip = Stage(owned, "flip-checkpoint")
    with pytest.raises(FaultMissed, match="none of the known formats"):
        flip.kind.undo_steps("hit", [flip.victim])


def test_a_file_without_a_count_of_updates_has_the_step_of_its_record(owned: RunDirectory) -> None:
    """SGD counts nothing, and the script counts from 0: the record decides."""
    stage = Stage(owned, "remove-checkpoint")
    stage.saved(TorchSave().write(stage.job / "last.pt", {"w": floats(1.0), "step": 7}), 8)
    assert stage.hit()[0]["step"] == 8


@pytest.mark.parametrize("kind", KINDS)
def test_where_updates_were_left_out_the_record_says_which_checkpoint_is_hit(owned: RunDirectory, kind: str) -> None:
    """GradScaler leaves out updates: the optimizer counts fewer, and none between these two saves."""
    stage = Stage(owned, kind)
    for step in (1, 2, 5, 6, 7, 8):
        stage.left_out(step)
    for step in (4, 8):
        state = {**job_state(2), "step": step, "saved": float(step)}
        stage.saved(TorchSave().write(stage.job / "checkpoints" / f"step-{step}.pt", state), step)
    shown, _ = stage.hit()
    assert (shown["file"], shown["step"]) == ("checkpoints/step-8.pt", 8)
    assert shown.get("older") == ("checkpoints/step-4.pt" if kind == "stale-checkpoint" else None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "rename-checkpoint"])
def test_of_a_directory_the_ranks_own_part_is_hit(owned: RunDirectory, tmp_path: Path, kind: str) -> None:
    stage = Stage(owned, kind, rank=1)
    directories(stage)
    before = stage.files()
    shown, between = stage.hit()
    part = "ckpt/step_8/__1_0.distcp"
    assert (shown["file"], shown["step"], shown.get("older")) == (part, 8, None)
    assert {name for name in before if before[name] != between.get(name)} == {part}
    for name, content in between.items():
        (tmp_path / "left" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "left" / name).write_bytes(content)
    path = tmp_path / "left" / "ckpt" / "step_8" / ".metadata"
    if kind == "stale-checkpoint":
        assert between[part] == before["ckpt/step_4/__1_0.distcp"]
        assert read_checkpoint(path).tensors != read_checkpoint(stage.job / "ckpt/step_8/.metadata").tensors
        return
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path)
    assert not isinstance(caught.value, CheckpointNotSupported)
    assert caught.value.path.name == "__1_0.distcp"


def test_a_rank_without_a_part_of_the_directory_is_not_hit(owned: RunDirectory) -> None:
    stage = Stage(owned, "remove-checkpoint", rank=5)
    directories(stage)
    with pytest.raises(FaultMissed, match="rank 5 has written no part of"):
        stage.kind.undo_steps("hit", [stage.victim])


def test_a_directory_has_no_step_in_a_files_name(owned: RunDirectory) -> None:
    stage = Stage(owned, "rename-checkpoint", rank=1)
    directories(stage)
    with pytest.raises(FaultMissed, match="holds no step"):
        stage.kind.undo_steps("hit", [stage.victim])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "rename-checkpoint"])
def test_of_a_directory_the_metadata_alone_is_hit(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind, part=".metadata", where="header")
    directories(stage)
    before = stage.files()
    shown, between = stage.hit()
    index = "ckpt/step_8/.metadata"
    assert (shown["file"], shown["step"], shown.get("older")) == (index, 8, None)
    assert {name for name in before if before[name] != between.get(name)} == {index}
    assert (index in between) == (kind != "remove-checkpoint")
    if kind == "stale-checkpoint":
        assert between[index] == before["ckpt/step_4/.metadata"]


def test_a_checkpoint_that_is_one_file_has_no_metadata(owned: RunDirectory) -> None:
    stage = Stage(owned, "remove-checkpoint", part=".metadata")
    files_of_rank_0(stage)
    with pytest.raises(FaultMissed, match=r"only a directory of PyTorch's distributed checkpoints has \.metadata"):
        stage.kind.undo_steps("hit", [stage.victim])


def test_a_directory_has_no_record_besides_its_metadata(owned: RunDirectory) -> None:
    stage = Stage(owned, "damage-record")
    directories(stage)
    with pytest.raises(FaultMissed, match="rank 0 has no record of its checkpoints"):
        stage.kind.undo_steps("hit", [stage.victim])


@pytest.mark.parametrize("how", ["remove", "truncate", "corrupt", "stale"])
def test_megatrons_tracker_is_the_record_of_its_saves(owned: RunDirectory, how: str) -> None:
    stage = Stage(owned, "damage-record", how=how)
    for step in (4, 8):
        saved = write_megatron(stage.job / "ckpt", step)
        stage.saved(saved / "mp_rank_00" / "model_optim_rng.pt", step)
    shown, between = stage.hit()
    assert (shown["file"], shown["step"]) == (f"ckpt/{TRACKER}", 8)
    if how == "stale":
        assert between[f"ckpt/{TRACKER}"] == b"4"


def test_a_save_outside_the_job_is_not_hit(owned: RunDirectory, tmp_path: Path) -> None:
    stage = Stage(owned, "remove-checkpoint")
    stage.job.mkdir(exist_ok=True)
    outside = TorchSave().write(tmp_path / "outside" / "job" / "step-8.pt", job_state(8))
    stage.saved(outside, 8)
    with pytest.raises(FaultMissed, match="has no checkpoint"):
        stage.kind.undo_steps("hit", [stage.victim])
    assert outside.is_file()
