"""Defects of jobs of PyTorch whose newest checkpoint is damaged before torchrun starts all ranks again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded
from chaos.selftest.torch_file import STATE, TorchFile, torch_stored

_RANKS, _HIT = 2, 1
_OLDER, _SAVED, _DAMAGED = 2, 4, 6
_READ = ("load.begin", "load.end", "checkpoint.read")
_STEP = ("step.begin", "step.end", "digest", "batch", "checkpoint.begin", "checkpoint.end")

_defect = partial(file_defect, base="live-torch-elastic-damage", check="resume")
_injection = partial(file_defect, base="live-torch-elastic-damage", check="injection", verdict="unknown")


def _met(**values: object) -> Mutate:
    """Return a mutation of the harness's record of what lay in place of the damaged file."""
    return recorded(lambda records: records.first("checkpoint.damage_met").update(values))


def _new(records: Records, rank: int) -> int:
    """Return the process of a rank after the restart."""
    return int(records.last("agent.start", rank=rank)["pid"])


def _reads(records: Records, rank: int, step: int) -> None:
    """Let the new process of a rank read the file of another step."""
    for record in records.all(rank=rank, pid=_new(records, rank)):
        if record["event"] in _READ:
            record["path"] = record["path"].replace(f"step-{_SAVED}.pt", f"step-{step}.pt")


def _goes_on_from(*ranks: int) -> Mutate:
    """Return a mutation: these ranks load the damaged step's file, and train no step twice."""

    def change(records: Records) -> None:
        for rank in ranks:
            new = _new(records, rank)
            saved = records.digest(rank, _DAMAGED)["parameters"]
            _reads(records, rank, _DAMAGED)
            again = [record for record in records.all(rank=rank, pid=new) if _is_trained_again(record)]
            records.drop(again)
            records.first("train.begin", pid=new)["initial_step"] = _DAMAGED
            records.first("initial", pid=new)["parameters"] = dict(saved)

    return recorded(change)


def _is_trained_again(record: Record) -> bool:
    return record["event"] in _STEP and _SAVED < record["step"] <= _DAMAGED


def _older_state(run_dir: Path) -> None:
    """Let the hit rank count from the older checkpoint's step with the state of an earlier one."""
    theirs = Records(run_dir, baseline=True).digest(_HIT, _OLDER)["parameters"]

    def change(records: Records) -> None:
        own = records.first("initial", pid=_new(records, _HIT))["parameters"]
        own.update({name: value for name, value in theirs.items() if name in own})

    recorded(change)(run_dir)


def _stale_file(file: TorchFile) -> None:
    file.take(STATE, TorchFile(file.path.with_name(f"step-{_OLDER}.pt")))


def _evidence_gone(records: Records) -> None:
    records.first("fault.landed", fault="damage")["evidence"] = []


def _older_hit(records: Records) -> None:
    shown = records.first("fault.landed", fault="damage")["evidence"][0]
    shown.update(file=shown["file"].replace(f"step-{_DAMAGED}.pt", f"step-{_SAVED}.pt"), step=_SAVED)


def _nothing_changed(records: Records) -> None:
    shown = records.first("fault.landed", fault="damage")["evidence"][0]
    shown["after"] = records.first("checkpoint.damage_met")["content"] = shown["before"]


DEFECTS = (
    _defect(
        "torch-elastic-damage-gone-on-from",
        "torchrun starts all ranks again, and both go on from the checkpoint that has a flipped bit on rank 1.",
        _goes_on_from(*range(_RANKS)),
        "no rank loads a checkpoint that a fault has damaged",
        "rank 1 loaded job/checkpoints/rank_1/step-6.pt, which a fault had damaged",
    ),
    _defect(
        "torch-elastic-damage-met-by-one-rank-only",
        "Rank 0 goes on from its own newest file, and rank 1 from an older one.",
        _goes_on_from(0),
        "after recovery 1 training goes on at step 5",
        "rank 0 went on at step 7",
    ),
    _defect(
        "torch-elastic-damage-not-looked-for",
        "Nobody has looked whether the damaged file lay there when the first new process started.",
        recorded(lambda records: records.drop(records.all("checkpoint.damage_met"))),
        "nobody has looked for rank 1's file",
        verdict="unknown",
    ),
    _defect(
        "torch-elastic-damage-content-not-recorded",
        "What lay in place of the damaged file could not be read.",
        _met(content=None, problem="the file cannot be read"),
        "the file cannot be read",
        verdict="unknown",
    ),
    _defect(
        "torch-elastic-damage-put-right",
        "The damaged file had another content when the ranks were started again.",
        _met(content="0" * 64),
        "was another than the fault had left",
        verdict="unknown",
    ),
    _defect(
        "torch-elastic-damage-without-evidence",
        "The digests of the damaged file are not recorded.",
        recorded(_evidence_gone),
        "no fault is recorded to have damaged a checkpoint",
        verdict="unknown",
    ),
    _injection(
        "torch-elastic-damage-changed-nothing",
        "The file has the same content as before, so there is nothing that the script could pass over.",
        recorded(_nothing_changed),
        "rank 1's file checkpoints/rank_1/step-6.pt has the same content as before",
    ),
    _injection(
        "torch-elastic-damage-of-older-file",
        "The checkpoint of step 4 was damaged, and the newest one is sound.",
        recorded(_older_hit),
        "rank 1's file of step 4 was hit, not that of step 6",
    ),
    _defect(
        "torch-elastic-damage-older-state-stale",
        "Rank 1 passes the damaged file over, counts from step 4 and holds the state of step 2.",
        _older_state,
        "after recovery 1 rank 1 held another state than that of step 4",
        "of step 2)",
    ),
    _defect(
        "torch-elastic-damage-older-file-stale",
        "The older checkpoint of rank 1, from which it goes on, holds the state of step 2.",
        torch_stored(f"rank_{_HIT}/step-{_SAVED}.pt", _stale_file),
        "in rank 1's file of step 4 differ: ",
        check="checkpoint",
    ),
    _defect(
        "torch-elastic-damage-goes-back-too-far",
        "Rank 1 passes the sound checkpoint of step 4 over, too, and loads that of step 2.",
        recorded(lambda records: _reads(records, _HIT, _OLDER)),
        "rank 1 read no checkpoint of step 4, but of step 2",
        check="mechanism",
    ),
)
