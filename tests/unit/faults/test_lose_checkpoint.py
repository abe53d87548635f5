"""What a rank has saved is gone from where the job looks for it, and kept where the undo note says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.faults.checkpoints.lose_checkpoint import KIND
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.history.ledger import Ledger
from chaos.machine.linux.process import identify
from chaos.plan.job_effect import may_be_planned

NO_JOB: Any = None


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    storage = tmp_path / "job" / "checkpoints"
    for rank in (0, 2):
        (storage / f"rank_{rank}").mkdir(parents=True)
        (storage / f"rank_{rank}" / "sliced-1_4.ckpt").write_bytes(b"slices")
    record = tmp_path / "history" / "train-rank_2-7.jsonl"
    return Victim(2, identify(1), record, storage=storage)


def test_it_is_registered_with_an_effect_that_the_plan_knows() -> None:
    assert registry("faults").load("lose-checkpoint") is KIND
    assert may_be_planned(KIND.effect)


def test_the_files_are_gone_with_evidence_and_kept(victim: Victim, tmp_path: Path) -> None:
    assert victim.storage is not None
    assert KIND.evidence(NO_JOB, victim) is None
    ledger = Ledger(tmp_path / "undo.jsonl")
    (step,) = KIND.undo_steps("disk", [victim])
    ledger.record(step)
    KIND.inject(NO_JOB, victim)
    assert KIND.evidence(NO_JOB, victim) == {"signal": None, "removed": ["sliced-1_4.ckpt"], "directory": "rank_2"}
    assert [path.name for path in victim.storage.iterdir()] == ["rank_0"]
    undone = undo_step(ledger, step, UNDO_ACTIONS, UndoContext("token", SYSTEM_CLOCK))
    assert undone.ok
    assert undone.how == f"kept in {tmp_path / 'lost' / 'rank_2'}, to be moved back by hand"
    assert (tmp_path / "lost" / "rank_2" / "sliced-1_4.ckpt").read_bytes() == b"slices"


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_has_saved_nothing_cannot_lose_it(victim: Victim, rank: int, tmp_path: Path) -> None:
    assert victim.storage is not None
    for path in (victim.storage / "rank_2").iterdir():
        path.unlink()
    if rank == 0:
        (victim.storage / "rank_2").rmdir()
    with pytest.raises(FaultMissed, match="rank 2 has nothing to lose"):
        KIND.inject(NO_JOB, victim)
    assert not (tmp_path / "lost").exists()


def test_it_is_lost_once(victim: Victim) -> None:
    KIND.inject(NO_JOB, victim)
    with pytest.raises(FaultMissed, match="nothing to lose"):
        KIND.inject(NO_JOB, victim)


def test_a_job_that_does_not_say_where_it_saves_loses_nothing(victim: Victim) -> None:
    with pytest.raises(FaultMissed, match="does not say in which directory"):
        KIND.inject(NO_JOB, Victim(2, victim.identity, victim.record))


def test_an_undo_note_without_a_fault_says_that_nothing_was_taken(victim: Victim, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    (step,) = KIND.undo_steps("disk", [victim])
    ledger.record(step)
    undone = undo_step(ledger, step, UNDO_ACTIONS, UndoContext("token", SYSTEM_CLOCK))
    assert (undone.ok, "nothing was taken" in undone.how) == (True, True)
