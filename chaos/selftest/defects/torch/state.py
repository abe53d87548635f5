"""Defects of the state and the steps with which the ranks of a job of PyTorch go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

_SAVED, _LAST = 4, 10
_READ = ("load.begin", "load.end", "checkpoint.read")
_STEP = ("step.begin", "step.end", "digest")
_RANKS = 3


_defect = partial(file_defect, base="live-torch-resume", check="resume")


def _initial(records: Records, rank: int) -> Record:
    """Return the state with which a rank goes on, in the second launch or in its second process."""
    return records.last("initial", rank=rank)


def _of(source: Callable[[Records], Record], wanted: Callable[[str], bool], *ranks: int) -> Mutate:
    """Return a mutation: these ranks go on with some parameters from another record of the fault-free run."""

    def mutate(run_dir: Path) -> None:
        theirs = source(Records(run_dir, baseline=True))["parameters"]

        def change(records: Records) -> None:
            for rank in ranks:
                own = _initial(records, rank)["parameters"]
                own.update({name: value for name, value in theirs.items() if name in own and wanted(name)})

        recorded(change)(run_dir)

    return mutate


def _fresh(records: Records) -> Record:
    """Return the state after the first step: the optimizer's state is made in it."""
    return records.digest(1, 1)


def _older(records: Records) -> Record:
    return records.digest(1, 2)


def _is_moment(name: str) -> bool:
    return name.startswith("optimizer.exp_avg")


def _is_counter(name: str) -> bool:
    return name.startswith("optimizer.step")


def _reads(records: Records, rank: int, old: str, new: str) -> None:
    for record in records.all(rank=rank):
        if record["event"] in _READ:
            record["path"] = record["path"].replace(old, new)


def _reads_elsewhere(records: Records) -> None:
    for record in records.all(rank=1):
        if record["event"] in _READ:
            record["path"] = f"/elsewhere/yesterday/job{record['path'].split('/job')[-1]}"


def _unread(records: Records) -> None:
    """Remove the record of every rank's load: rank 0 alone could have given its state to the others."""
    records.drop([record for event in ("load.begin", "load.end") for record in records.all(event)])


def _second_steps(records: Records, rank: int, first: int = _SAVED + 1) -> list[Record]:
    begin = records.last("train.begin", rank=rank)
    return [
        record
        for record in records.all(rank=rank, pid=begin["pid"])
        if record["event"] in _STEP and record["step"] >= first
    ]


def _shifted(by: int) -> Mutate:
    def change(records: Records) -> None:
        for record in _second_steps(records, 1):
            record["step"] += by

    return recorded(change)


def _left_out(records: Records) -> None:
    records.drop([record for record in _second_steps(records, 0) if record["step"] == 8])


def _twice(records: Records) -> None:
    step_records = [record for record in _second_steps(records, 0) if record["step"] == 8]
    after = step_records[-1]
    for record in step_records:
        after = records.insert(after, **{key: value for key, value in record.items() if key not in ("mono", "wall")})


def _stops_early(records: Records) -> None:
    records.drop(_second_steps(records, 2, first=_LAST))


def _from_the_start(records: Records) -> None:
    """Let the generation of torchrun count from 0: nothing is read, and training begins anew."""
    for rank in range(_RANKS):
        records.drop([record for record in records.all(rank=rank) if record["event"] in _READ])
        begin = records.last("train.begin", rank=rank)
        begin["initial_step"] = 0
        first = records.first("initial", rank=rank)
        after = _initial(records, rank)
        after["parameters"] = first["parameters"]
        early = [record for record in records.all(rank=rank, pid=first["pid"]) if record["event"] in _STEP]
        for record in early:
            if record["step"] <= _SAVED:
                values = {key: value for key, value in record.items() if key not in ("mono", "wall", "pid", "attempt")}
                after = records.insert(after, **values)


def _moments_not_recorded(records: Records) -> None:
    initial = _initial(records, 1)
    initial["parameters"] = {name: value for name, value in initial["parameters"].items() if not _is_moment(name)}


def _older_for_all(records: Records) -> None:
    for rank in range(_RANKS):
        _reads(records, rank, "step-4.pt", "step-2.pt")


DEFECTS = (
    _defect(
        "torch-moments-not-restored",
        "Rank 1 goes on with the weights of the file and with other moments.",
        _of(_fresh, _is_moment, 1),
        "8 of 16 parameters of rank 1 are not the file's: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-moments-not-restored-after-restart",
        "torchrun starts all ranks again, and rank 1 goes on with other moments than those of the file.",
        _of(_fresh, _is_moment, 1),
        "after recovery 1 rank 1 held another state than that of step 4: 8 differ: optimizer.exp_avg.0",
        base="live-torch-elastic",
    ),
    _defect(
        "torch-moments-not-restored-on-any-rank",
        "No rank restores the moments, so that all agree.",
        _of(_fresh, _is_moment, 0, 1, 2),
        "8 of 16 parameters of rank 0 are not the file's: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-step-counters-not-restored",
        "AdamW of rank 1 counts its steps from 1 again.",
        _of(_fresh, _is_counter, 1),
        "4 of 16 parameters of rank 1 are not the file's: optimizer.step.0",
    ),
    _defect(
        "torch-one-weight-not-restored",
        "Rank 1 does not restore one bias.",
        _of(_fresh, lambda name: name == "3.bias", 1),
        "1 of 16 parameters of rank 1 are not the file's: 3.bias",
    ),
    _defect(
        "torch-state-of-older-step",
        "Rank 1 counts from step 4 and holds the state of step 2.",
        _of(_older, lambda name: True, 1),
        "rank 1 holds the weights of step 2, its counter says 4",
    ),
    _defect(
        "torch-state-of-older-step-after-restart",
        "torchrun starts all ranks again, and rank 1 counts from step 4 and holds the state of step 2.",
        _of(_older, lambda name: True, 1),
        "after recovery 1 rank 1 held another state than that of step 4: 16 differ",
        "of step 2)",
        base="live-torch-elastic",
    ),
    _defect(
        "torch-moments-not-recorded",
        "The moments with which rank 1 goes on are not recorded.",
        recorded(_moments_not_recorded),
        "rank 1 has recorded no digests of optimizer.exp_avg.0",
        verdict="unknown",
    ),
    _defect(
        "torch-generation-from-the-start",
        "The ranks that torchrun has started again read no checkpoint, and train from step 1.",
        recorded(_from_the_start),
        "after recovery 1 training goes on at step 5",
        "rank 0 went on at step 1: step 1 was trained again",
        base="live-torch-elastic",
    ),
    _defect(
        "torch-resumed-from-the-start",
        "The job that is started again reads no checkpoint, and trains from step 1.",
        recorded(_from_the_start),
        "training goes on at step 5, after the saved step 4",
        "rank 0 began with step 1",
    ),
    _defect(
        "torch-file-of-other-run-read",
        "Rank 1 loads a checkpoint that an earlier run left elsewhere.",
        recorded(_reads_elsewhere),
        "rank 1 loaded a file of another run",
    ),
    _defect(
        "torch-older-file-read-by-one",
        "Rank 1 loads its file of step 2, and says that it goes on from step 4.",
        recorded(lambda records: _reads(records, 1, "step-4.pt", "step-2.pt")),
        "the step to resume from is known",
        "rank 1 loaded job/checkpoints/rank_1/step-2.pt (step 2)",
        verdict="unknown",
    ),
    _defect(
        "torch-older-file-read-by-all",
        "Every rank loads its file of step 2, though that of step 4 is there.",
        recorded(_older_for_all),
        "training goes on at step 5",
        "step 2 was saved, so the next is step 3",
    ),
    _defect(
        "torch-older-file-read-after-restart",
        "Rank 1, started again by torchrun, loads its file of step 2.",
        recorded(lambda records: _reads(records, 1, "step-4.pt", "step-2.pt")),
        "rank 1 read no checkpoint of step 4, but of step 2",
        base="live-torch-elastic",
        check="mechanism",
    ),
    _defect(
        "torch-loads-not-recorded",
        "The files that the ranks loaded after the restart are not recorded.",
        recorded(_unread),
        "no load of rank 0 is recorded after the restart",
        base="live-torch-elastic",
        check="mechanism",
        verdict="unknown",
    ),
    _defect(
        "torch-resumed-one-step-early",
        "Rank 1 goes on one step too early.",
        _shifted(-1),
        "training goes on at step 5, after the saved step 4",
        "rank 1 began with step 4",
    ),
    _defect(
        "torch-resumed-one-step-late",
        "Rank 1 goes on one step too late.",
        _shifted(1),
        "training goes on at step 5, after the saved step 4",
        "rank 1 began with step 6",
    ),
    _defect(
        "torch-step-skipped",
        "Rank 0 leaves step 8 out after the restart.",
        recorded(_left_out),
        "rank 0 skipped step 8",
        base="live-torch-elastic",
    ),
    _defect(
        "torch-step-trained-twice",
        "Rank 0 trains step 8 twice after the restart.",
        recorded(_twice),
        "rank 0 trained step 8 twice",
        base="live-torch-elastic",
    ),
    _defect(
        "torch-stops-early",
        "Rank 2 ends after step 9.",
        recorded(_stops_early),
        "every rank trains to step 10",
        "rank 2 stopped after step 9",
        base="live-torch-elastic",
    ),
)
