"""A job that calls ``Model.train`` once an epoch begins to train more than once; that is neither another job nor a
recovery."""

from __future__ import annotations

from tests.kit.runs.good_run import LAST, RANKS, SAVED, GoodRun, Record, good_run, hex_of
from tests.kit.runs.repaired_run import uce_run
from tests.unit.checks.judging import Judge, not_passed, said

EPOCH = 3


def by_epochs(records: list[Record], *, last: int) -> list[Record]:
    """The training in these events ends after each epoch, and the next one begins."""
    made: list[Record] = []
    trained: set[int] = set()
    for record in records:
        made.append(record)
        step = int(record.get("step") or 0)
        if record["event"] == "digest" and step % EPOCH == 0 and step < last and step not in trained:
            trained.add(step)
            place = {key: record[key] for key in ("attempt", "rank", "pid", "wall")}
            made.append({**place, "mono": record["mono"] + 1, "event": "train.end"})
            made.append({**place, "mono": record["mono"] + 2, "event": "train.begin", "initial_step": step})
            made.append({**place, "mono": record["mono"] + 3, "event": "initial", "parameters": record["parameters"]})
    return made


def epoch_by_epoch(run: GoodRun, *, until: int) -> GoodRun:
    """The fault-free run trains so to its end; the run itself, up to the step ``until`` only, where its fault comes."""
    assert run.baseline is not None
    for name, records in run.baseline.items():
        if name.startswith("train-rank_"):
            run.baseline[name] = by_epochs(records, last=run.plan.training.last_step)
    for name, records in run.files.items():
        if name.startswith("train-rank_"):
            run.files[name] = by_epochs(records, last=until)
    return run


def test_it_is_compared_with_the_beginning_of_the_fault_free_run(judged: Judge) -> None:
    assert not_passed(judged(epoch_by_epoch(good_run(), until=SAVED))) == []


def test_another_beginning_than_the_fault_free_runs_is_another_job(judged: Judge) -> None:
    run = epoch_by_epoch(good_run(), until=SAVED)
    first = next(record for record in run.files["train-rank_0-1000.jsonl"] if record["event"] == "initial")
    first["parameters"]["layer1.bias"] = hex_of("other")
    assert said(judged(run), "loss", "unknown", "rank 0 began with another layer1.bias than the baseline")


def test_after_an_online_repair_its_trainings_are_one(judged: Judge) -> None:
    run = epoch_by_epoch(uce_run(), until=LAST)
    assert not_passed(judged(run)) == []


def test_a_training_that_does_not_begin_where_the_one_before_has_ended_is_no_continuation(judged: Judge) -> None:
    run = epoch_by_epoch(uce_run(), until=LAST)
    for rank in range(RANKS):
        for record in run.events("train.begin", rank=rank, initial_step=EPOCH):
            record["initial_step"] = EPOCH - 1
    assert said(judged(run), "resume", "fail", "rank 0 began again ")
