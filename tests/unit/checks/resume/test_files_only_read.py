"""A file that a job reads in each of its starts, as its data, is no checkpoint to go on from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.runs.good_run import RANKS, GoodRun
from tests.unit.checks.judging import Judge, not_passed, said

DATA = "/data/train.pt"


def reads(run: GoodRun, *attempts: str, late: bool = False, path: str = DATA) -> GoodRun:
    """Every rank reads the data in these attempts, before its first step or behind it."""
    for attempt in attempts:
        for rank in range(RANKS):
            steps = sorted(entry["mono"] for entry in run.events("step.begin", attempt=attempt, rank=rank))
            (first, *_) = run.events("step.begin", attempt=attempt, rank=rank)
            at = steps[1] if late else steps[0]
            where = {name: first[name] for name in ("attempt", "rank", "pid", "wall")}
            for number, event in enumerate(("load.begin", "load.end")):
                # Behind the loads of the checkpoint, and before the state that training begins with.
                mono = at - 4 + number if late else _before(run, attempt, rank, at) + number
                run.add(f"{attempt}-rank_{rank}", {"event": event, "path": path, "mono": mono, **where})
    return run


def _before(run: GoodRun, attempt: str, rank: int, at: int) -> int:
    states = [entry["mono"] for entry in run.events("initial", attempt=attempt, rank=rank)]
    return int(min([at, *states])) - 4


def verdicts(judgement: Any) -> list[Any]:
    return [finding for finding in not_passed(judgement) if finding[1] == "resume"]


def test_data_that_every_start_reads_is_no_checkpoint(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(reads(run, "train", "resume"))) == []


def test_data_beside_what_the_first_start_has_read_is_no_checkpoint(run: GoodRun, judged: Judge) -> None:
    """There may be a file for each sample, and each start reads others."""
    reads(run, "train", path="/data/0.pt")
    reads(run, "resume", path="/data/64.pt")
    assert verdicts(judged(reads(run, "resume", late=True, path="/data/65.pt"))) == []
    reads(run, "resume", path="/data/checkpoints/64.pt")
    assert said(judged(run), "resume", "unknown", "data/checkpoints/64.pt, which was not kept")


@pytest.mark.parametrize(("attempts", "late"), [(("resume",), False), (("train", "resume"), True)])
def test_a_file_that_the_first_start_has_not_read_first_may_be_a_checkpoint(
    run: GoodRun, judged: Judge, attempts: tuple[str, ...], late: bool
) -> None:
    judgement = judged(reads(run, *attempts, late=late))
    assert said(judgement, "resume", "unknown", "data/train.pt, which was not kept")


def test_a_file_that_the_run_has_saved_is_no_input(run: GoodRun, judged: Judge) -> None:
    reads(run, "train", "resume")
    (saved, *_) = run.events("checkpoint.end", attempt="train")
    run.add(f"train-rank_{saved['rank']}", {**saved, "path": DATA, "mono": saved["mono"] + 1, "kind": "periodic"})
    assert said(judged(run), "resume", "unknown", "data/train.pt, which was not kept")


def test_a_file_beside_one_that_the_run_has_saved_is_no_input(run: GoodRun, judged: Judge) -> None:
    reads(run, "train", "resume")
    (saved, *_) = run.events("checkpoint.end", attempt="train")
    beside = {**saved, "path": "/data/step-4.pt", "mono": saved["mono"] + 1, "kind": "periodic"}
    run.add(f"train-rank_{saved['rank']}", beside)
    assert said(judged(run), "resume", "unknown", "data/train.pt, which was not kept")


def test_a_rank_that_reads_nothing_but_data_has_loaded_no_checkpoint(run: GoodRun, judged: Judge) -> None:
    reads(run, "train", "resume")
    for rank in range(RANKS):
        for event in ("load.begin", "load.end"):
            for entry in list(run.events(event, attempt="resume", rank=rank)):
                if entry["path"] != DATA:
                    run.drop(event, attempt="resume", rank=rank, path=entry["path"])
    assert said(judged(run), "resume", "unknown", "no load of rank 1 is recorded")
