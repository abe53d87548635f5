"""Damage to the record of which checkpoint is the last: with evidence, of the right file, and put back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.checkpoints.damage_record import KIND
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.machine.linux.process import identify
from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.mindformers_records import META, TRACKER, read_meta, read_tracker
from chaos.plan.job_effect import may_be_planned
from chaos.store.directory import RunDirectory, create_run
from tests.unit.faults.test_damaging_checkpoints import content
from tests.unit.observe.mindformers_files import write_safetensors

NO_JOB: Any = None


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "record", "", clock=SYSTEM_CLOCK)


def victim(owned: RunDirectory, how: str) -> Victim:
    storage = owned.path.resolve() / "job" / "output" / "checkpoint"
    record = owned.path.resolve() / "history" / "train-rank_0-7.jsonl"
    return Victim(0, identify(1), record, storage=storage, fault="hit", parameters={"how": how})


def legacy(owned: RunDirectory, how: str) -> tuple[Victim, Path]:
    """Two checkpoints of rank 0, and the record of the second."""
    hit = victim(owned, how)
    assert hit.storage is not None
    own = hit.storage / "rank_0"
    own.mkdir(parents=True)
    for step in (4, 8):
        (own / f"tiny_rank_0-1_{step}.ckpt").write_bytes(content(step))
    (own / META).write_text(json.dumps({"last_epoch": 1, "last_step": 8, "last_ckpt_file": "tiny_rank_0-1_8.ckpt"}))
    return hit, own / META


def iterations(owned: RunDirectory, how: str) -> tuple[Victim, Path]:
    """Two saves of the new layout, and the tracker that names the second."""
    hit = victim(owned, how)
    assert hit.storage is not None
    for step in (4, 12):
        own = hit.storage / f"iteration_{step:08d}"
        own.mkdir(parents=True)
        write_safetensors(own / "tiny-model-0000000-0000001.safetensors", {"weight": [1.0, 2.0]})
        (own / "common.json").write_text(json.dumps({"step_num": step}))
    (hit.storage / TRACKER).write_text("12")
    return hit, hit.storage / TRACKER


@pytest.mark.parametrize("how", ["remove", "truncate", "corrupt", "stale"])
@pytest.mark.parametrize("made", [legacy, iterations])
def test_the_record_is_hit_with_evidence_and_put_back(owned: RunDirectory, made: Any, how: str) -> None:
    hit, path = made(owned, how)
    before = path.read_bytes()
    assert may_be_planned(KIND.effect)
    (step,) = KIND.undo_steps("hit", [hit])
    recorded = owned.ledger.record(step)
    assert KIND.evidence(NO_JOB, hit) is None
    KIND.inject(NO_JOB, hit)
    shown = KIND.evidence(NO_JOB, hit)
    assert shown is not None
    assert (shown["file"], shown["step"]) == (str(path.relative_to(hit.storage or "")), 8 if made is legacy else 12)
    assert (shown["after"] == "absent") == (how == "remove") == (not path.exists())
    if how == "truncate":
        assert before.startswith(path.read_bytes())
    if how == "corrupt":
        assert shown["bytes"] == [len(before), len(before)]
        with pytest.raises(CheckpointError):
            (read_meta if made is legacy else read_tracker)(path)
    undone = undo_step(owned.ledger, recorded, UNDO_ACTIONS, UndoContext(owned.token, SYSTEM_CLOCK))
    assert undone.ok, undone.how
    assert path.read_bytes() == before


def test_a_stale_record_names_the_checkpoint_before(owned: RunDirectory) -> None:
    hit, path = legacy(owned, "stale")
    KIND.inject(NO_JOB, hit)
    last = read_meta(path)
    assert (last.epoch, last.step_in_epoch, last.file) == (1, 4, "tiny_rank_0-1_4.ckpt")


def test_a_stale_tracker_names_the_iteration_before(owned: RunDirectory) -> None:
    hit, path = iterations(owned, "stale")
    KIND.inject(NO_JOB, hit)
    assert read_tracker(path) == 4


def test_what_is_no_record_is_not_hit(owned: RunDirectory) -> None:
    hit, path = legacy(owned, "stale")
    (path.parent / "tiny_rank_0-1_4.ckpt").unlink()
    with pytest.raises(FaultMissed, match="no older checkpoint than that of step 8"):
        KIND.undo_steps("hit", [hit])
    path.write_text("{}")
    with pytest.raises(FaultMissed, match="does not show which checkpoint is the last"):
        KIND.undo_steps("hit", [hit])
    path.unlink()
    with pytest.raises(FaultMissed, match="rank 0 has no record"):
        KIND.undo_steps("hit", [hit])
