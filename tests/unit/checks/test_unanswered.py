"""A launch that nothing has to answer trains every step once, in order, to its end; after a recovery the end counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.checks.judge import judge
from chaos.plan.job_effect import NONE
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import LAST, RANKS, GoodRun, Mutate, good_run, hex_of
from tests.kit.runs.repaired_run import STRUCK, uce_run
from tests.unit.checks.harmless import nothing_happens
from tests.unit.checks.judging import Judge, cases_of, not_passed, said

STEPS = ("step.begin", "step.end", "digest")
LAUNCHER = PlannedFault("launcher", "kill", (), {"elapsed": 1.0}, {}, None, 9, NONE, "launcher")


@pytest.fixture
def run() -> GoodRun:
    run = good_run()
    nothing_happens(run)
    return run


def forget(run: GoodRun, first: int, last: int, *ranks: int, events: tuple[str, ...] = STEPS) -> None:
    for name, records in run.files.items():
        run.files[name] = [
            record
            for record in records
            if record["event"] not in events or record["rank"] not in ranks or not first <= record["step"] <= last
        ]


def trained_again(run: GoodRun, *steps: int) -> None:
    for records in run.files.values():
        again = [record for record in records if record["event"] in STEPS and record["step"] in steps]
        records.extend({**record, "mono": record["mono"] + 10**9, "wall": record["wall"] + 10**9} for record in again)
        records.sort(key=lambda record: int(record["mono"]))


def one_step_more(run: GoodRun) -> None:
    (last,) = run.events("step.end", rank=2, step=LAST)
    run.add("train-rank_2", {**last, "event": "step.begin", "step": LAST + 1, "mono": last["mono"] + 10**9})


def other_batches(run: GoodRun) -> None:
    for record in run.events("digest"):
        if record["step"] > 5:
            record["batch"] = hex_of("another", record["rank"], record["step"])


SPOILT: dict[str, list[tuple[Mutate, str]]] = {
    "resume": [
        (lambda run: forget(run, 6, LAST, *range(RANKS)), "rank 3 stopped after step 5"),
        (lambda run: forget(run, 4, LAST, 3), "rank 3 stopped after step 3"),
        (lambda run: forget(run, 6, 7, *range(RANKS)), "rank 2 skipped step 6 in attempt train (step 8 after step 5)"),
        (lambda run: trained_again(run, 6, 7), "rank 1 trained step 6 twice in attempt train (after step 12)"),
        (lambda run: forget(run, 1, 2, 0), "rank 0 began with step 3"),
        (lambda run: forget(run, 5, 5, 0, events=("step.end",)), "rank 0 began step 5 in attempt train and did not"),
        (one_step_more, "every rank trains to step 12 | rank 2 began step 13"),
        (other_batches, "rank 0 trained another batch at step 6, which the baseline never trained on this rank"),
    ],
    "hygiene": [
        (
            lambda run: run.only("launcher.exit").update(code=1),
            "the launcher of attempt train exits with 0 | exit code 1",
        ),
    ],
}

WITHOUT: dict[str, list[tuple[Mutate, str]]] = {
    "resume": [
        (lambda run: run.drop("step.end", rank=1), "no end of a step of rank 1 in attempt train is recorded"),
        (lambda run: run.drop("step.begin", rank=1), "no step of rank 1 in attempt train is recorded"),
        (lambda run: run.drop("digest", rank=1), "no batch of rank 1 can be compared"),
        (lambda run: forget(run, 7, 7, 1, events=("digest",)), "no batch of rank 1 at step 7 was recorded"),
    ],
    "loss": [
        (
            lambda run: forget(run, LAST, LAST, 1, events=("digest",)),
            "no parameter digests of rank 1 at step 12, the last of the baseline",
        ),
        (lambda run: without(run, "gradients", 6), "no gradients of rank 1 were recorded at step 12"),
    ],
    "consistency": [
        (lambda run: without(run, "parameters", 6), "no digests of rank 1 after step 6 of attempt train"),
        (lambda run: without(run, "parameters", 6, 1, 3), "no digests to compare ranks 1,3 by after step 12"),
    ],
    "hygiene": [
        (lambda run: run.drop("launcher.exit"), "the launcher of attempt train exits with 0 | no exit status"),
    ],
}


def without(run: GoodRun, field: str, first: int, *ranks: int) -> None:
    """From a step on the ranks (rank 1) have not recorded this."""
    for record in run.events("digest"):
        if record["rank"] in (ranks or (1,)) and record["step"] >= first:
            record[field] = None


def test_the_good_run_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert not_passed(judgement) == []
    assert said(judgement, "resume", "pass", "steps up to 12 on 4 ranks")
    assert said(judgement, "resume", "pass", "48 batches are equal")
    assert said(judgement, "hygiene", "pass", "the ranks of the faulted launch end as planned")


@pytest.mark.parametrize("until", [None, 4])
@pytest.mark.parametrize(("check", "spoil", "reason"), cases_of(SPOILT))
def test_what_is_wrong_fails(
    run: GoodRun, judged: Judge, check: str, spoil: Mutate, reason: str, until: int | None
) -> None:
    """However far the run can be compared with the fault-free one."""
    if until is not None:
        run.replan(comparable=Comparable(until, until + 1, "a batch of step 5 is another one"))
        assert not_passed(judged(run)) == []
    spoil(run)
    assert said(judged(run), check, "fail", reason)


@pytest.mark.parametrize(("check", "spoil", "reason"), cases_of(WITHOUT))
def test_without_evidence_it_is_unknown(run: GoodRun, judged: Judge, check: str, spoil: Mutate, reason: str) -> None:
    spoil(run)
    assert said(judged(run), check, "unknown", reason)


def test_a_launcher_that_the_plan_kills_is_asked_for_that_end(run: GoodRun, judged: Judge) -> None:
    """Of the fault itself there is no proof here, so nobody is blamed."""
    run.replan(faults=(LAUNCHER,))
    assert said(judged(run), "hygiene", "unknown", "the launcher of attempt train ends with SIGKILL | exit code 0")
    run.only("launcher.exit").update(signal=9, code=None)
    assert said(judged(run), "hygiene", "pass", "the ranks of the faulted launch end as planned")


def test_a_sink_of_several_steps_is_one(run: GoodRun, judged: Judge) -> None:
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for name, records in files.items():
            files[name] = [record for record in records if record["event"] not in STEPS or record["step"] % 2 == 0]
    assert said(judged(run), "resume", "fail", "rank 0 skipped step 3 in attempt train (step 4 after step 2)")
    run.replan(sink_size=2)
    assert not_passed(judged(run)) == []


def test_where_single_steps_are_recorded_none_may_be_left_out(run: GoodRun, judged: Judge) -> None:
    run.replan(sink_size=2)
    for name, records in run.files.items():
        run.files[name] = [
            record for record in records if record["event"] not in STEPS or (record["rank"], record["step"]) != (0, 2)
        ]
    assert said(judged(run), "resume", "fail", "rank 0 skipped step 2 in attempt train (step 3 after step 1)")


def test_a_directory_of_the_job_that_was_not_kept_tells_of_no_checkpoint(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path / "run")
    assert said(judge(directory), "checkpoint", "pass", "there is none")
    shutil.rmtree(directory / "job")
    assert said(judge(directory), "checkpoint", "unknown", "the job's directory was not kept")


def after_the_repair(run: GoodRun, change: Mutate) -> GoodRun:
    run.replan(baseline="none")
    run.baseline = None
    change(run)
    return run


def test_replicas_are_compared_after_the_repair(judged: Judge) -> None:
    assert not_passed(judged(after_the_repair(uce_run(), lambda run: None))) == []


@pytest.mark.parametrize("ranks", [(3,), (1, 3)])
def test_what_replicas_held_before_the_repair_stands_for_nothing(judged: Judge, ranks: tuple[int, ...]) -> None:
    """Neither where one of them has no digests after it, nor where none of them tells of a parameter."""

    def silent(run: GoodRun) -> None:
        if len(ranks) == 1:
            forget(run, STRUCK + 1, LAST, *ranks, events=("digest",))
        else:
            without(run, "parameters", STRUCK, *ranks)

    judgement = judged(after_the_repair(uce_run(), silent))
    assert said(judgement, "consistency", "unknown", "no digests to compare ranks 1,3 by after step 12")
    assert not said(judgement, "consistency", "pass", "comparisons")


def test_gradients_of_before_the_repair_stand_for_nothing(judged: Judge) -> None:
    run = uce_run()
    without(run, "gradients", STRUCK, 3)
    (finding,) = said(judged(run), "loss", "unknown", "gradients are finite and not zero")
    assert "no gradients of rank 3 were recorded at step 12, the last of attempt train" in finding.seen


def test_a_hole_in_the_last_digest_is_no_comparison(judged: Judge) -> None:
    """Two digests without parameters are not compared, and are not counted."""
    run = good_run()
    before = said(judged(run), "consistency", "pass", "comparisons, all equal")
    for record in run.events("digest", attempt="resume", step=8):
        record["parameters"] = None
    after = said(judged(run), "consistency", "pass", "comparisons, all equal")
    counts = [int(finding.seen.split()[0]) for finding in (*before, *after)]
    assert counts[0] - counts[1] == 2
