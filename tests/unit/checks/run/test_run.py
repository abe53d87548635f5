"""Check ``run``: the harness came to its end, and the job kept the deadlines of its waits."""

from __future__ import annotations

from pathlib import Path

from chaos.report.analyze import analyze
from tests.kit.runs.good_run import GoodRun, record
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "run") == {"pass"}


def test_a_job_that_does_not_end_in_time_fails(run: GoodRun, judged: Judge) -> None:
    run.add("harness", record(20.0, "deadline.expired", "train", name="end", seconds=300, detail="it hangs"))
    assert said(judged(run), "run", "fail", "deadline end (300 s) is kept | it ran out: it hangs")


def test_without_the_end_of_the_harness_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("run.end")
    assert said(judged(run), "run", "unknown", "the history has no run.end")


def test_a_deadline_names_where_each_rank_is_and_blames_the_rank_that_differs(run: GoodRun, judged: Judge) -> None:
    run.add("harness", record(20.0, "deadline.expired", "train", name="end", seconds=300, detail="it hangs"))
    stacks = [
        {"ranks": [3], "files": ["stacks-rank_3-1003.txt"], "frames": [["/job/own/data.py", 7, "read"]]},
        {"ranks": [0, 1], "files": ["a", "b"], "frames": [["/job/own/train.py", 41, "exchange"]]},
    ]
    without = [{"ranks": [2], "why": "its process is stopped"}]
    run.add("harness", record(20.1, "stacks.taken", "train", stacks=stacks, without=without))
    (finding,) = said(judged(run), "run", "fail", "deadline end (300 s) is kept | it ran out: it hangs; stacks: ")
    _, _, shown = finding.seen.partition("; stacks: ")
    assert shown.split(" | ") == [
        "rank 3: own/data.py:7 in read",
        "ranks 0-1: own/train.py:41 in exchange",
        "rank 2: no stack, its process is stopped",
    ]
    assert finding.where[1:] == ("logs/train/stacks-rank_3-1003.txt", "logs/train/a")
    assert finding.data.ranks == (3,)


def test_the_ranks_that_a_deadline_has_stopped_follow_from_it_and_the_deadline_is_the_cause(
    run: GoodRun, tmp_path: Path
) -> None:
    reached = {"step.begin": 9, "step.end": 8, "digest": 8}
    for name, events in run.files.items():
        if name.startswith("resume"):
            run.files[name] = [event for event in events if event.get("step", 0) <= reached.get(event["event"], 99)]
    expired = record(0, "deadline.expired", "resume", name="end", seconds=300, detail="not exited: ranks 0-3: step 8")
    end = min(run.events("rank.exit", attempt="resume"), key=lambda event: int(event["mono"]))
    run.add("harness", {**expired, "mono": end["mono"] - 1, "wall": end["wall"] - 1})
    result = analyze(run.write(tmp_path / "run"), write=False)
    assert result.headline is not None
    assert result.headline.text.startswith("run: it ran out: not exited: ranks 0-3: step 8 (expected: deadline end")
