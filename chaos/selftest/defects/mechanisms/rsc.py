"""Defects of the restart of all ranks (RSC): not all of them, out of order, from another checkpoint."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.calls import call
from chaos.selftest.defect import file_defect
from chaos.selftest.records import Records, recorded

_STEP = ("step.begin", "step.end", "digest")
_READ = ("load.begin", "load.end", "checkpoint.read")
_TIMES = ("mono", "wall")


_defect = partial(file_defect, base="rsc", check="mechanism")


def _ended_by_itself(records: Records) -> None:
    victim = records.first("fault.injecting")["rank"]
    other = next(record for record in records.all("rank.exit") if record["rank"] != victim)
    records.end(other, signal=None, code=1)


def _started_too_early(records: Records) -> None:
    """Start rank 1 again before rank 0 has ended."""
    late = next(record for record in records.all("child.exit") if record["child_rank"] == 0)
    new = records.last("agent.start", rank=1)
    late["mono"], late["wall"] = new["mono"] + 1000, new["wall"] + 1000


def _under_another_launcher(records: Records) -> None:
    records.last("rank.found", rank=1)["ppid"] += 50_000


def _never_restarted(records: Records) -> None:
    """Let rank 0 keep its process."""
    old, new = records.first("rank.found", rank=0)["pid"], records.last("rank.found", rank=0)["pid"]
    records.drop([record for record in records.all(rank=0, pid=new) if record["event"] in ("rank.found", "rank.exit")])
    records.drop([*records.all("rank.exit", rank=0), *records.all("child.exit", child_pid=new)])
    for record in records.all(rank=0, pid=new):
        record["pid"] = old
    last = records.all("rank.exit", rank=1)[-1]
    records.insert(last, rank=0, pid=old)


def _only_older_read(records: Records) -> None:
    """Let rank 0 read the checkpoint of step 3, and state nevertheless that it goes on from step 6."""
    for record in records.all(rank=0):
        if record["event"] in _READ:
            record["path"] = record["path"].replace("1_6.ckpt", "1_3.ckpt")


def _newest_not_finished(records: Records) -> None:
    """Leave the save of step 6 unfinished on every rank, though the ranks load it."""
    records.drop([record for record in records.all("checkpoint.end") if record["step"] == 6])


def _from_older_step(records: Records) -> None:
    """Let every rank go on from step 3 and train steps 4 to 6 once more."""
    for begin in records.all("train.begin", initial_step=6):
        begin["initial_step"] = 3
        state = next(record for record in records.all("initial", rank=begin["rank"]) if record["mono"] > begin["mono"])
        pid = begin["pid"]
        chosen = [
            record
            for record in records.all(rank=begin["rank"])
            if record["event"] in _STEP and 4 <= record["step"] <= 6
        ]
        for record in chosen:
            state = records.insert(state, **{k: v for k, v in record.items() if k not in (*_TIMES, "pid")}, pid=pid)


def _state_of_older_step(run_dir: Path) -> None:
    theirs = Records(run_dir, baseline=True).digest(1, 3)["parameters"]
    recorded(lambda records: records.last("initial", rank=1).update(parameters=theirs))(run_dir)


def _not_read_at_all(records: Records) -> None:
    """Remove the record of every rank's load. Another rank could have given one rank alone its state."""
    records.drop([record for event in _READ for record in records.all(event)])


def _end_of_read_missing(records: Records) -> None:
    """Keep only the beginning of rank 0's load: no other rank gave it its state."""
    records.drop(records.all("load.end", rank=0))


DEFECTS = (
    _defect(
        "rsc-rank-not-killed",
        "Rank 0 ended by itself before the restart.",
        recorded(_ended_by_itself),
        "rank 0 was not killed: exit code 1",
    ),
    _defect(
        "rsc-started-too-early",
        "A rank was started again before all had ended.",
        recorded(_started_too_early),
        "all ranks have ended before one is started again",
        "before rank 0 had ended",
    ),
    _defect(
        "rsc-under-another-launcher",
        "The new process of rank 1 is not a child of the launcher.",
        recorded(_under_another_launcher),
        "rank 1's new process",
        "not of launcher",
    ),
    _defect(
        "rsc-rank-not-restarted",
        "Rank 0 was not started again.",
        recorded(_never_restarted),
        "rank 0 was not started again",
    ),
    _defect(
        "rsc-from-older-checkpoint",
        "All ranks went on from step 3, though step 6 was saved.",
        recorded(_from_older_step),
        "after recovery 1 training goes on at step 7",
        "rank 0 went on at step 4: step 4 was trained again",
        check="resume",
    ),
    _defect(
        "rsc-state-of-older-checkpoint",
        "Rank 1 counts from step 6 and holds the state of step 3.",
        _state_of_older_step,
        "rank 1 held another state than that of step 6",
        "of step 3)",
        check="resume",
    ),
    _defect(
        "rsc-checkpoint-not-finished",
        "The checkpoint of step 6 was never finished.",
        recorded(_newest_not_finished),
        "the last finished periodic checkpoint holds step 6",
        "step 3",
    ),
    _defect(
        "rsc-newest-checkpoint-not-read",
        "Rank 0 read the checkpoint of step 3 alone, and says that it goes on from step 6.",
        recorded(_only_older_read),
        "rank 0 read no checkpoint of step 6, but of step 3",
    ),
    _defect(
        "rsc-reads-not-recorded",
        "The files that the ranks read are not recorded.",
        recorded(_not_read_at_all),
        "no load of rank 0 is recorded after the restart",
        verdict="unknown",
    ),
    _defect(
        "rsc-end-of-read-not-recorded",
        "Rank 0 began to read the checkpoint, and no end of it is recorded.",
        recorded(_end_of_read_missing),
        "no load of rank 0 is recorded after the restart",
        verdict="unknown",
    ),
    _defect(
        "rsc-repaired-online",
        "The SDK cleaned rank 0 where all ranks were to be started again.",
        recorded(lambda records: call(records, records.last("train.begin", rank=0), "clean")),
        "online repair acted: handler clean on rank 0",
    ),
)
