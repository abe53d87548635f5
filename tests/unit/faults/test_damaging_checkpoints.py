"""Damage to a rank's newest checkpoint: with evidence, only of the run's own files, and put back as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.faults.checkpoints.checkpoint_damage import KEPT
from chaos.faults.checkpoints.file_content import digest_file, unfinished_place
from chaos.faults.checkpoints.flip_checkpoint import data_bit
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, Undone, after_launches, undo_step
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.linux.process import identify
from chaos.observe.checkpoints.blocks import BLOCK
from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.plan.job_effect import may_be_planned
from chaos.store.directory import RunDirectory, create_run
from tests.unit.conftest import MakeDeep
from tests.unit.observe.ckpt_writer import CkptWriter
from tests.unit.observe.values import values

NO_JOB: Any = None
KINDS = ("truncate-checkpoint", "flip-checkpoint", "stale-checkpoint", "rename-checkpoint", "remove-checkpoint")
NEWEST, OLDER = "plain-1_8.ckpt", "plain-1_4.ckpt"


def content(step: int) -> bytes:
    write = CkptWriter()
    weights = [0.25 * index - step for index in range(64)]
    return (
        write.floats("layer.bias", 3.5, 1e9) + write.floats("layer.weight", *weights) + write.integer("step_num", step)
    )


class Stage:
    """A run with two checkpoints of two ranks, and the fault that hits rank 2."""

    def __init__(self, owned: RunDirectory, kind: str, **parameters: Any) -> None:
        self.owned = owned
        self.kind = registry("faults").load(kind)
        self.storage = owned.path.resolve() / "job" / "checkpoints"
        self.own = self.storage / "rank_2"
        for rank in (0, 2):
            (self.storage / f"rank_{rank}").mkdir(parents=True)
            for name, step in ((OLDER, 4), (NEWEST, 8)):
                (self.storage / f"rank_{rank}" / name).write_bytes(content(step))
                (self.storage / f"rank_{rank}" / name).chmod(0o400)
        record = owned.path.resolve() / "history" / "train-rank_2-7.jsonl"
        self.victim = Victim(2, identify(1), record, storage=self.storage, fault="hit", parameters=parameters)
        self.before = self.files()

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.storage)): path.read_bytes() for path in self.storage.rglob("*.*")}

    def make(self) -> UndoStep:
        """Record the undo step, then make the fault, as the harness does."""
        (step,) = self.kind.undo_steps("hit", [self.victim])
        recorded: UndoStep = self.owned.ledger.record(step)
        self.kind.inject(NO_JOB, self.victim)
        return recorded

    def undo(self, step: UndoStep) -> Undone:
        return undo_step(self.owned.ledger, step, UNDO_ACTIONS, UndoContext(self.owned.token, SYSTEM_CLOCK))


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "damage", "", clock=SYSTEM_CLOCK)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_file_of_the_rank_is_hit_and_put_back(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    assert may_be_planned(stage.kind.effect)
    assert stage.kind.evidence(NO_JOB, stage.victim) is None
    step = stage.make()
    assert after_launches(step.action)  # the next launch is to meet the damage
    shown = stage.kind.evidence(NO_JOB, stage.victim)
    assert (shown["file"], shown["step"]) == (f"rank_2/{NEWEST}", 8)
    assert (shown["before"] == shown["after"]) == (kind == "rename-checkpoint")
    changed = {name for name in stage.before if stage.files().get(name) != stage.before[name]}
    assert changed == {f"rank_2/{NEWEST}"}
    hit = stage.own / Path(shown.get("renamed", shown["file"])).name
    assert hit.exists() != (shown["after"] == "absent")
    if hit.exists():
        assert hit.stat().st_mode & 0o777 == 0o400
    assert shown.get("older") == (f"rank_2/{OLDER}" if kind == "stale-checkpoint" else None)
    undone = stage.undo(step)
    assert undone.ok, undone.how
    assert stage.files() == stage.before
    assert not (owned.path / KEPT).exists()
    again = stage.undo(step)
    assert (again.ok, "nothing was damaged" in again.how) == (True, True)


def test_what_is_left_of_each_file(owned: RunDirectory) -> None:
    stage = Stage(owned, "truncate-checkpoint")
    stage.make()
    with pytest.raises(CheckpointError, match="truncated"):
        read_checkpoint(stage.own / NEWEST)
    assert stage.before[f"rank_2/{NEWEST}"].startswith(stage.files()[f"rank_2/{NEWEST}"])


def test_a_file_that_is_cut_between_two_values_loads_with_fewer_of_them(owned: RunDirectory) -> None:
    stage = Stage(owned, "truncate-checkpoint", at="record")
    weights = CkptWriter().floats("layer.bias", *([1.0] * 60)) + CkptWriter().integer("global_step", 12)
    (stage.own / NEWEST).unlink()
    (stage.own / NEWEST).write_bytes(CkptWriter.with_crc(weights + CkptWriter().floats("moments.bias", *([0.5] * 80))))
    stage.make()
    left = read_checkpoint(stage.own / NEWEST)
    assert (sorted(left.tensors), left.crc) == (["global_step", "layer.bias"], "absent")


def test_a_file_without_records_cannot_be_cut_between_them(owned: RunDirectory) -> None:
    stage = Stage(owned, "truncate-checkpoint", at="record")
    data = Path(__file__).parents[1] / "observe" / "data" / "all_types.safetensors"
    (stage.own / NEWEST).unlink()
    (stage.own / NEWEST).write_bytes(data.read_bytes())
    (stage.own / OLDER).unlink()
    with pytest.raises(FaultMissed, match="has no records"):
        stage.kind.undo_steps("hit", [stage.victim])


def test_the_newest_file_is_the_one_of_the_optimizers_last_step(owned: RunDirectory) -> None:
    """A job that was started again counts its ``step_num``, and the names, anew."""
    stage = Stage(owned, "truncate-checkpoint")
    write = CkptWriter()
    (stage.own / "plain_1-1_2.ckpt").write_bytes(
        write.floats("w", 1.0, 2.0) + write.integer("global_step", 10) + write.integer("step_num", 2)
    )
    stage.make()
    shown = stage.kind.evidence(NO_JOB, stage.victim)
    assert (shown["file"], shown["step"]) == ("rank_2/plain_1-1_2.ckpt", 10)


def test_a_stale_file_holds_the_older_step_under_the_newest_name(owned: RunDirectory) -> None:
    stage = Stage(owned, "stale-checkpoint")
    stage.make()
    assert read_checkpoint(stage.own / NEWEST).number("step_num") == 4


def test_a_renamed_file_has_the_name_of_a_step_that_nobody_has_reached(owned: RunDirectory) -> None:
    stage = Stage(owned, "rename-checkpoint")
    stage.make()
    names = {file.path.name for file in find_checkpoints(stage.storage) if file.rank == 2}
    assert names == {OLDER, "plain-1_16.ckpt"}
    assert read_checkpoint(stage.own / "plain-1_16.ckpt").number("step_num") == 8


def test_a_flipped_bit_changes_one_value_and_the_file_still_loads(owned: RunDirectory) -> None:
    stage = Stage(owned, "flip-checkpoint")
    before = read_checkpoint(stage.own / NEWEST)
    weights = values(before, "layer.weight")
    stage.make()
    after = read_checkpoint(stage.own / NEWEST)
    assert [name for name, tensor in before.tensors.items() if tensor.digest != after.tensors[name].digest] == [
        "layer.weight"
    ]
    differs = weights != values(after, "layer.weight")
    assert differs.sum() == 1 and bool(differs[abs(weights).argmax()])
    assert after.tensors["layer.weight"].finite


def test_a_flipped_bit_in_the_header_makes_the_file_unreadable(owned: RunDirectory) -> None:
    stage = Stage(owned, "flip-checkpoint", where="header")
    stage.make()
    pairs = zip(stage.before[f"rank_2/{NEWEST}"], stage.files()[f"rank_2/{NEWEST}"], strict=True)
    assert sum((pair ^ other).bit_count() for pair, other in pairs) == 1
    with pytest.raises(CheckpointError):
        read_checkpoint(stage.own / NEWEST)


@pytest.mark.parametrize("name", ["all_types.safetensors", "with_crc.safetensors", "with_crc.ckpt"])
def test_a_bit_is_found_in_files_of_mindspore_and_a_checksum_notices_it(name: str, tmp_path: Path) -> None:
    data = Path(__file__).parents[1] / "observe" / "data" / name
    at, bit = data_bit(data)
    changed = bytearray(data.read_bytes())
    changed[at] ^= 1 << bit
    path = tmp_path / name
    path.write_bytes(changed)
    if "crc" in name:
        with pytest.raises(CheckpointError, match="the content was changed"):
            read_checkpoint(path)
        return
    one, other = read_checkpoint(data).tensors, read_checkpoint(path).tensors
    assert sum(one[tensor].digest != other[tensor].digest for tensor in one) == 1


def test_the_largest_value_is_found_in_any_block_of_its_own_tensor(tmp_path: Path) -> None:
    """A tensor before it holds the same bytes."""
    values = np.ones(3 * BLOCK // 4, np.float32)
    values[-5] = -7
    values[-2] = 7
    same = CkptWriter().record("bits", [len(values)], "Int32", values.tobytes())
    path = tmp_path / "one.ckpt"
    path.write_bytes(same + CkptWriter().record("w", [len(values)], "Float32", values.tobytes()))
    assert data_bit(path) == (path.stat().st_size - 5 * 4 + 2, 6)


def test_a_tensor_in_slices_is_not_flipped(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"
    path.write_bytes(CkptWriter().record("w", [4], "Float32", bytes(8)) * 2)
    with pytest.raises(FaultMissed, match="no floating-point values that lie in order"):
        data_bit(path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_job_has_saved_since_is_not_overwritten(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    step = stage.make()
    (stage.own / NEWEST).unlink(missing_ok=True)
    (stage.own / NEWEST).write_bytes(content(12))
    undone = stage.undo(step)
    assert undone.ok and "the job has saved another" in undone.how
    assert (stage.own / NEWEST).read_bytes() == content(12)
    assert digest_file(Path(step.arguments["kept"])) == step.arguments["before"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_harness_that_was_killed_before_the_fault_has_damaged_nothing(owned: RunDirectory, kind: str) -> None:
    stage = Stage(owned, kind)
    (step,) = stage.kind.undo_steps("hit", [stage.victim])
    unfinished_place(stage.own / NEWEST).write_bytes(b"half of")
    undone = stage.undo(owned.ledger.record(step))
    assert undone.ok and "nothing was damaged" in undone.how
    assert stage.files() == stage.before
    assert list(stage.storage.rglob(".*")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_harness_that_was_killed_between_keeping_and_damaging_has_damaged_nothing(
    owned: RunDirectory, kind: str
) -> None:
    stage = Stage(owned, kind)
    (step,) = stage.kind.undo_steps("hit", [stage.victim])
    kept = Path(step.arguments["kept"])
    kept.parent.mkdir(parents=True)
    os.link(stage.own / NEWEST, kept)
    assert stage.undo(owned.ledger.record(step)).ok
    assert stage.files() == stage.before
    assert not (owned.path / KEPT).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_links_are_never_hit(owned: RunDirectory, kind: str, tmp_path: Path) -> None:
    stage = Stage(owned, kind)
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in (OLDER, NEWEST):
        (stage.own / name).rename(outside / name)
    (stage.own / NEWEST).symlink_to(outside / NEWEST)
    with pytest.raises(FaultMissed, match="rank 2 has no checkpoint"):
        stage.kind.undo_steps("hit", [stage.victim])
    (stage.own / NEWEST).unlink()
    stage.own.rmdir()
    stage.own.symlink_to(outside, target_is_directory=True)
    with pytest.raises(FaultMissed, match="rank 2 has no checkpoint"):
        stage.kind.undo_steps("hit", [stage.victim])


@pytest.mark.parametrize("spoil", ["link", "other run", "relative", "no digest"])
def test_an_undo_step_never_writes_outside_its_run(owned: RunDirectory, spoil: str, tmp_path: Path) -> None:
    stage = Stage(owned, "truncate-checkpoint")
    step = stage.make()
    arguments = dict(step.arguments)
    outside = tmp_path / "outside.ckpt"
    outside.write_bytes((stage.own / NEWEST).read_bytes())
    if spoil == "link":
        (stage.own / NEWEST).unlink()
        (stage.own / NEWEST).symlink_to(outside)
    elif spoil == "no digest":
        del arguments["after"]
    else:
        arguments["path"] = str(outside) if spoil == "other run" else f"{stage.own}/../../../../outside.ckpt"
    undone = stage.undo(UndoStep(step.id, step.fault, step.action, arguments))
    assert not undone.ok
    assert outside.read_bytes() == content(8)[: len(content(8)) // 2]


def test_a_rank_that_has_saved_nothing_or_once_cannot_be_hit(owned: RunDirectory) -> None:
    stage = Stage(owned, "stale-checkpoint")
    (stage.own / OLDER).unlink()
    with pytest.raises(FaultMissed, match="no older checkpoint"):
        stage.kind.undo_steps("hit", [stage.victim])
    (stage.own / NEWEST).unlink()
    with pytest.raises(FaultMissed, match="has no checkpoint"):
        stage.kind.undo_steps("hit", [stage.victim])
    with pytest.raises(FaultMissed, match="does not say in which directory"):
        stage.kind.undo_steps("hit", [Victim(2, stage.victim.identity, Path("none"))])


def test_a_file_is_hit_once(owned: RunDirectory) -> None:
    stage = Stage(owned, "flip-checkpoint")
    stage.make()
    with pytest.raises(FaultMissed, match="has hit a checkpoint before"):
        stage.kind.inject(NO_JOB, stage.victim)


def test_the_ledger_names_the_file_the_original_and_what_was_done(owned: RunDirectory) -> None:
    stage = Stage(owned, "truncate-checkpoint")
    step = stage.make()
    assert "cut off in the middle" in step.note and str(stage.own / NEWEST) in step.note
    assert Ledger(owned.path / "undo.jsonl").open_steps()[0].arguments == step.arguments


def test_where_a_newer_file_may_lie_too_deep_to_be_found_none_is_hit(owned: RunDirectory, make_deep: MakeDeep) -> None:
    stage = Stage(owned, "truncate-checkpoint")
    make_deep(stage.storage / "deep", 300)
    with pytest.raises(OSError, match="has more than 256 levels of directories below"):
        stage.kind.undo_steps("hit", [stage.victim])
