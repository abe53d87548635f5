"""Damage to one file of a save in MindFormers' new layout: with evidence, of that file only, and put back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.machine.linux.process import identify
from chaos.store.directory import RunDirectory, create_run
from tests.unit.observe.mindformers_files import write_safetensors

NO_JOB: Any = None
FILES = {
    "model": "tiny-model-0000000-0000001.safetensors",
    "optimizer": "tiny-opt-0000000-0000001.safetensors",
    "common.json": "common.json",
}
KINDS = ("remove-checkpoint", "truncate-checkpoint", "partial-checkpoint", "stale-checkpoint", "flip-checkpoint")


@pytest.fixture
def owned(tmp_path: Path) -> RunDirectory:
    return create_run(tmp_path, "parts", "", clock=SYSTEM_CLOCK)


def victim(owned: RunDirectory, **parameters: Any) -> Victim:
    """Rank 0 of a job with two saves, those of step 4 and 12."""
    storage = owned.path.resolve() / "job" / "output" / "checkpoint"
    for step in (4, 12):
        own = storage / f"iteration_{step:08d}"
        own.mkdir(parents=True)
        write_safetensors(own / FILES["model"], {"weight": [1.0, float(step)]})
        write_safetensors(own / FILES["optimizer"], {"adam_m.weight": [0.5, float(step)]})
        (own / "common.json").write_text(json.dumps({"step_num": step}))
    record = owned.path.resolve() / "history" / "train-rank_0-7.jsonl"
    return Victim(0, identify(1), record, storage=storage, fault="hit", parameters=parameters)


def content(hit: Victim) -> dict[str, bytes]:
    assert hit.storage is not None
    return {str(path.relative_to(hit.storage)): path.read_bytes() for path in hit.storage.rglob("*.*")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", FILES)
def test_one_file_of_the_newest_save_is_hit_with_evidence_and_put_back(
    owned: RunDirectory, kind: str, part: str
) -> None:
    where = {"where": "header"} if (kind, part) == ("flip-checkpoint", "common.json") else {}
    hit = victim(owned, part=part, **where)
    fault = registry("faults").load(kind)
    before = content(hit)
    (step,) = fault.undo_steps("hit", [hit])
    recorded = owned.ledger.record(step)
    assert fault.evidence(NO_JOB, hit) is None
    fault.inject(NO_JOB, hit)
    shown = fault.evidence(NO_JOB, hit)
    file = f"iteration_00000012/{FILES[part]}"
    assert (shown["file"], shown["step"]) == (file, 12)
    assert {name for name in before if content(hit).get(name) != before[name]} == {file}
    # Of the state beside the weights an older one makes no older checkpoint.
    assert ("older" in shown) == (kind == "stale-checkpoint" and part == "model")
    undone = undo_step(owned.ledger, recorded, UNDO_ACTIONS, UndoContext(owned.token, SYSTEM_CLOCK))
    assert undone.ok, undone.how
    assert content(hit) == before


def test_a_part_that_a_save_does_not_have_is_not_hit(owned: RunDirectory) -> None:
    hit = victim(owned, part="metadata.json")
    with pytest.raises(FaultMissed, match=r"there is no metadata\.json beside"):
        registry("faults").load("remove-checkpoint").undo_steps("hit", [hit])


def test_the_save_before_may_lack_the_part_or_be_of_another_layout(owned: RunDirectory) -> None:
    hit = victim(owned, part="common.json")
    assert hit.storage is not None
    (hit.storage / "iteration_00000004" / "common.json").unlink()
    registry("faults").load("remove-checkpoint").undo_steps("hit", [hit])
    with pytest.raises(FaultMissed, match="has no older checkpoint"):
        registry("faults").load("stale-checkpoint").undo_steps("hit", [hit])
