"""Every rank goes on to save its periodic checkpoints, above all after a recovery."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.checkpoint.saving_goes_on import judge_saving_goes_on
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import STORAGE_FULL
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import GoodRun, Record
from tests.kit.runs.rolled_back_run import AT, BACK_S, HELD, rolled_back_plan, rolled_back_run
from tests.unit.checks.judging import Judge, said

EXPECTED = "every rank saves a periodic checkpoint at least every 3 steps"
BACK = int(next(rolled_back_run().events("step.begin", rank=0, step=1))["mono"]) + int((AT + BACK_S - 10) * 1e9)


def after_the_rollback(run: GoodRun, event: str = "checkpoint.", since: int = BACK) -> list[Record]:
    return [
        record
        for own in run.files.values()
        for record in own
        if record["event"].startswith(event) and record["mono"] >= since and record["rank"] is not None
    ]


def forget(run: GoodRun, unwanted: list[Record]) -> None:
    assert unwanted
    for name, own in run.files.items():
        run.files[name] = [record for record in own if record not in unwanted]


def test_a_run_whose_ranks_go_on_to_save_passes(judged: Judge) -> None:
    assert said(judged(rolled_back_run()), "checkpoint", "pass", f"{EXPECTED} | 16 saves of ranks 0-3")


def test_a_recovery_after_which_nobody_saves_is_none(judged: Judge) -> None:
    run = rolled_back_run()
    forget(run, after_the_rollback(run))
    judgement = judged(run)
    text = f"rank 0 has trained up to step 9, and saved none since step {HELD}"
    assert said(judgement, "checkpoint", "fail", text)
    assert judgement.verdict == "fail"


def test_the_last_one_is_asked_for_where_the_training_came_to_its_end(judged: Judge) -> None:
    run = rolled_back_run()
    forget(run, [record for record in after_the_rollback(run) if record["step"] == 12 and record["rank"] == 1])
    assert said(judged(run), "checkpoint", "fail", "rank 1 has trained up to step 12, and saved none since step 9")
    run.drop("rank.exit", rank=1)
    assert not said(judged(run), "checkpoint", "fail", "rank 1 has trained up to step 12")


def test_where_no_save_of_anybody_is_recorded_it_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    run.drop("checkpoint.begin")
    run.drop("checkpoint.end")
    assert said(judged(run), "checkpoint", "unknown", "no save of any rank is recorded")


def test_what_a_fault_of_the_storage_may_have_refused_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    forget(run, after_the_rollback(run))
    full = PlannedFault("full", "disk-full", (0,), {"step": 9}, {}, None, 30, STORAGE_FULL)
    run.replan(faults=(*run.plan.faults, full))
    judgement = judged(run)
    assert said(judgement, "checkpoint", "unknown", "a fault of its storage may have refused it")
    assert not said(judgement, "checkpoint", "fail", EXPECTED)


def test_with_a_torn_history_nobody_is_blamed(judged: Judge) -> None:
    run = rolled_back_run()
    own = next(name for name in run.files if name.startswith("train-rank_0"))
    for number, record in enumerate(run.files[own]):
        record["seq"] = number
    forget(run, [record for record in after_the_rollback(run) if record["rank"] == 0])
    assert judged(run).verdict == "unknown"


OF_GROUPS = "every replica group saves a periodic checkpoint at least every 3 steps"


def saved_by(*ranks: int) -> GoodRun:
    """A run in which these ranks alone have ever saved; one rank of each replica group has to."""
    run = rolled_back_run()
    run.replan(every_rank_saves=False)
    forget(run, [save for save in after_the_rollback(run, "checkpoint.", since=0) if save["rank"] not in ranks])
    run.saved = {key: saved for key, saved in run.saved.items() if any(f"rank_{rank}/" in saved.path for rank in ranks)}
    return run


def test_one_rank_of_each_replica_group_may_save_for_all(judged: Judge) -> None:
    run = saved_by(0, 1)
    judgement = judged(run)
    assert said(judgement, "checkpoint", "pass", f"{OF_GROUPS} | 8 saves of ranks 0-1")
    assert not said(judgement, "checkpoint", "fail", OF_GROUPS)


def test_where_every_rank_has_to_save_one_of_a_group_is_not_enough(judged: Judge) -> None:
    run = saved_by(0, 1)
    run.replan(every_rank_saves=True)
    assert said(judged(run), "checkpoint", "fail", "rank 2 has trained up to step 3, and saved none since step 0")


def test_a_replica_group_of_which_no_rank_saves_fails(judged: Judge) -> None:
    text = "rank 1 has trained up to step 3, and saved none since step 0, nor has any rank of its replica group"
    assert said(judged(saved_by(0, 2)), "checkpoint", "fail", text)


def test_a_rank_that_has_saved_has_to_go_on_although_a_replica_does(judged: Judge) -> None:
    run = rolled_back_run()
    run.replan(every_rank_saves=False)
    forget(run, [save for save in after_the_rollback(run) if save["rank"] == 2])
    assert said(judged(run), "checkpoint", "fail", f"rank 2 has trained up to step 9, and saved none since step {HELD}")


def test_a_rank_that_saves_in_the_fault_free_run_has_to_save(judged: Judge) -> None:
    run = saved_by(0, 1)
    assert run.baseline is not None
    (own,) = [records for name, records in run.baseline.items() if name.startswith("train-rank_2")]
    last = own[-1]
    place = {name: last[name] for name in ("mono", "wall", "attempt", "rank", "pid")}
    own.append({**place, "event": "checkpoint.end", "kind": "periodic", "step": 12, "path": "net-12"})
    assert said(judged(run), "checkpoint", "fail", "rank 2 has trained up to step 3, and saved none since step 0")


def test_where_no_save_of_any_group_is_recorded_it_is_unknown(judged: Judge) -> None:
    assert said(judged(saved_by()), "checkpoint", "unknown", "no save of any rank is recorded")


def trained(*events: str, **more: Any) -> list[Finding]:
    """What is said of one process that did this, ``name step``, with an interval of 3."""
    story = []
    for number, text in enumerate(events):
        name, _, step = text.partition(" ")
        fields: dict[str, Any] = {"step": int(step)} if step else {}
        if name.startswith("checkpoint"):
            fields |= {"kind": "periodic", "path": f"net-{step}", **more}
        if name == "rank.exit":
            fields |= more
        story.append(Event(name, number, number, "agent", number, "train", 0, 100, fields, f"history/x.jsonl:{number}"))
    found = Collector("checkpoint")
    judge_saving_goes_on(rolled_back_plan(), History(tuple(story)), None, found)
    return found.findings()


def steps(*numbers: int) -> list[str]:
    return [f"step.{part} {number}" for number in numbers for part in ("begin", "end")]


SAVE = ("checkpoint.begin {0}", "checkpoint.end {0}")


def save(step: int) -> list[str]:
    return [one.format(step) for one in SAVE]


@pytest.mark.parametrize(
    "events",
    [
        ["train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6), *save(6), *steps(7)],
        # As MindSpore counts after a resume: from the beginning of this training.
        ["train.begin", *steps(8, 9, 10), *save(10), *steps(11, 12)],
        # A callback that saves before the agent's own comes to the end of the step.
        ["step.begin 1", "step.end 1", *steps(2), "step.begin 3", *save(3), "step.end 3", *steps(4, 5, 6)],
        # Ended before it could save; and one that was thrown back before.
        ["train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6)],
        [
            "train.begin",
            *steps(1, 2, 3),
            *save(3),
            *steps(4, 5, 6),
            "train.begin",
            *steps(4, 5, 6),
            *save(6),
            *steps(7),
        ],
    ],
)
def test_no_step_was_due(events: list[str]) -> None:
    assert [finding.verdict for finding in trained(*events)] == ["pass"]


def process(*events: str) -> History:
    """The record of one process that did this, ``name step``, and that ended well."""
    story = [
        Event(name, number, number, "agent", number, "train", 0, 100, _fields(name, step), f"history/x.jsonl:{number}")
        for number, (name, _, step) in enumerate(text.partition(" ") for text in (*events, "train.end", "rank.exit"))
    ]
    return History(tuple(story))


def _fields(name: str, step: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"step": int(step)} if step else {}
    if name.startswith("checkpoint"):
        fields |= {"kind": "periodic", "path": f"net-{step}"}
    return fields | ({"code": 0} if name == "rank.exit" else {})


@pytest.mark.parametrize(
    ("fault_free", "verdict"),
    [(process("train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6)), "pass"), (None, "fail")],
    ids=["as in the fault-free run", "without one"],
)
def test_a_script_that_saves_before_a_step_saves_nothing_behind_its_last_one(
    fault_free: History | None, verdict: str
) -> None:
    found = Collector("checkpoint")
    history = process("train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6))
    judge_saving_goes_on(rolled_back_plan(), history, fault_free, found)
    assert [finding.verdict for finding in found.findings()] == [verdict]


def test_a_last_save_that_the_fault_free_run_has_made_is_asked_for() -> None:
    found = Collector("checkpoint")
    story = ["train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6)]
    judge_saving_goes_on(rolled_back_plan(), process(*story), process(*story, *save(6)), found)
    assert [finding.verdict for finding in found.findings()] == ["fail"]


def test_a_write_in_the_background_must_have_ended_well_before_the_next() -> None:
    events = ["train.begin", *steps(1, 2, 3), *save(3), *steps(4, 5, 6), *save(6), *steps(7)]
    (finding,) = trained(*events, asynchronous=True)
    assert finding.verdict == "unknown"
    assert "rank 0 has not recorded that its checkpoint of step 3 was written" in finding.seen
    events.insert(events.index("step.begin 4"), "checkpoint.written 3")
    assert [finding.verdict for finding in trained(*events, asynchronous=True, ok=True)] == ["pass"]
    (finding,) = trained(*events, asynchronous=True, ok=False)
    assert finding.verdict == "fail"
    assert "rank 0 could not write its checkpoint of step 3 in the background" in finding.seen


LATE = ["train.begin", *steps(1, 2, 3, 4), *save(3), *steps(5, 6, 7, 8)]
"""A process whose thread saves step 3 after step 4."""


def test_a_thread_of_the_jobs_own_saves_a_step_later() -> None:
    (finding,) = trained(*LATE, *save(6), *steps(9), late=True)
    assert finding.verdict == "pass"
    assert {finding.verdict for finding in trained(*LATE, *save(6), *steps(9))} == {"fail"}


def test_a_save_that_a_thread_may_not_have_begun_is_not_asked_for_unless_its_process_ended_well() -> None:
    (finding,) = trained(*LATE, late=True)
    assert finding.verdict == "unknown"
    assert "saved none since step 3; the job saves in a thread of its own, which may not have begun" in finding.seen
    (finding,) = trained(*LATE, "train.end", "rank.exit", late=True, code=0)
    assert finding.verdict == "fail"
    (finding,) = trained(*LATE, *save(6), "train.end", "rank.exit", late=True, code=0)
    assert finding.verdict == "pass"


def test_a_late_save_without_a_step_leaves_open_which_step_was_saved() -> None:
    (finding,) = trained(*LATE, "checkpoint.begin", "checkpoint.end", "train.end", "rank.exit", late=True, code=0)
    assert finding.verdict == "unknown"
    assert "the record does not tell which steps" in finding.seen
