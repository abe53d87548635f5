"""A distributed recovery: the good run passes, each defect fails for its reason, missing evidence is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.faults.checkpoints.proof_lost import lost_files_doubts
from chaos.plan.parts.resume import PlannedRestore
from tests.kit.runs.good_run import SAVED, GoodRun, Mutate, Record, pid_of, record, state_after
from tests.kit.runs.restored_run import LOSS, group_info, restored_run, slices_of
from tests.unit.checks.judging import Judge, said

INFO = "job/checkpoints/rank_{}/group_info.pb"


@pytest.fixture
def run() -> GoodRun:
    return restored_run()


def loads(run: GoodRun, rank: int, path: str) -> None:
    for event in ("load.begin", "load.end"):
        run.only(event, rank=rank)["path"] = path


def names(run: GoodRun, rank: int, *ranks: int) -> None:
    run.others[INFO.format(rank)] = group_info(*ranks)


def stale(run: GoodRun) -> None:
    run.saved[0].state = state_after(0, SAVED - 1)


def hopeless(run: GoodRun) -> None:
    """Nothing is left to go on from: started again, every rank says so and ends."""
    run.replan(restore=PlannedRestore(None, (0, 2), {}), resumes=False, resume_step=None)
    run.saved.pop(0)
    for name, records in run.files.items():
        if name.startswith("resume"):
            run.files[name] = [event for event in records if event["event"] in ("writer.start", "agent.start")]
    for event in run.events("rank.exit", attempt="resume"):
        event["code"] = 1
        run.others[f"logs/resume/worker_{event['rank']}.log"] = (
            b"FileNotFoundError: no step has a file for every rank\n"
        )


def test_the_good_run_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    assert said(judgement, "consistency", "pass", "4 files do")
    assert said(judgement, "resume", "pass", "each rank loads the file of its own replica group")


@pytest.mark.parametrize(
    ("spoil", "check", "text"),
    [
        (lambda run: loads(run, 2, slices_of(1)), "resume", "rank 2 loaded rank 1's file, of another replica group"),
        (
            lambda run: loads(run, 3, slices_of(1)),
            "resume",
            "rank 3 loaded rank 1's file, the plan shows that of rank 3",
        ),
        (
            lambda run: names(run, 3, 2, 3),
            "consistency",
            "of rank 3 names [2, 3], its replica group is [1, 3]",
        ),
        (lambda run: names(run, 0, 0, 1, 2, 3), "consistency", "the file of rank 0 names [0, 1, 2, 3]"),
        (lambda run: names(run, 7, 7), "consistency", "there is a file of rank 7, which the job does not have"),
        (
            lambda run: run.others.update({INFO.format(1): b"\x12\x05"}),
            "consistency",
            "file of rank 1 is not group",
        ),
    ],
    ids=["another-group", "not-its-own", "wrong-pair", "everybody", "no-such-rank", "damaged"],
)
def test_each_defect_fails_for_its_reason(run: GoodRun, judged: Judge, spoil: Mutate, check: str, text: str) -> None:
    spoil(run)
    assert said(judged(run), check, "fail", text)


def test_a_lost_slice_that_is_replaced_by_an_old_one_fails(run: GoodRun, judged: Judge) -> None:
    stale(run)
    assert judged(run).verdict != "pass"


def test_an_older_step_than_planned_fails(run: GoodRun, judged: Judge) -> None:
    run.replan(restore=PlannedRestore(SAVED - 1, (2,), {rank: (rank,) for rank in range(4)}), resume_step=SAVED)
    assert said(judged(run), "resume", "fail", f"training goes on at step {SAVED}")


def test_without_its_group_file_a_rank_is_unknown(run: GoodRun, judged: Judge) -> None:
    del run.others[INFO.format(3)]
    assert said(judged(run), "consistency", "unknown", "there is no file of rank 3")


def test_a_rank_whose_files_were_taken_is_told_of_by_its_replica(run: GoodRun, judged: Judge) -> None:
    del run.others[INFO.format(2)]
    assert said(judged(run), "consistency", "pass", "3 files do")


def test_without_any_group_file_all_are_unknown_only_where_the_job_writes_them(run: GoodRun, judged: Judge) -> None:
    for rank in range(4):
        del run.others[INFO.format(rank)]
    assert said(judged(run), "consistency", "unknown", "there is no file of rank 0")
    run.replan(group_info=False)
    assert not [
        finding for finding in judged(run).findings if finding.check == "consistency" and finding.verdict == "unknown"
    ]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("removed", [], "names no checkpoint that rank 2 has lost"),
        ("removed", ["group_info.pb"], "names no checkpoint that rank 2 has lost"),
        ("directory", "rank_1", "the evidence is of directory rank_1"),
    ],
)
def test_a_loss_without_evidence_is_unknown(run: GoodRun, judged: Judge, field: str, value: object, text: str) -> None:
    run.only("fault.landed", fault=LOSS)["evidence"][0][field] = value
    assert said(judged(run), "injection", "unknown", text)
    assert judged(run).verdict == "unknown"


def test_faults_with_another_effect_have_no_such_evidence(run: GoodRun) -> None:
    assert lost_files_doubts.__doc__
    assert not list(lost_files_doubts(run.plan.faults[0], None, {}))  # type: ignore[arg-type]


def test_that_nothing_can_be_resumed_is_seen_in_the_files_and_said_by_the_job(run: GoodRun, judged: Judge) -> None:
    hopeless(run)
    judgement = judged(run)
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    assert said(judgement, "resume", "pass", f"of 2 groups, files are left of step {SAVED}: 1")
    assert said(judgement, "resume", "pass", "4 ranks did")


def test_a_complete_step_refutes_the_plan(run: GoodRun, judged: Judge) -> None:
    slices = run.saved[1], restored_run().saved[0]
    hopeless(run)
    run.saved = dict(enumerate(slices))
    assert said(judged(run), "resume", "fail", f"step {SAVED} has a file of every group")


def own_files_only(run: GoodRun) -> None:
    """Ranks 0 and 2 hold the same slices, and rank 0's files are lost: of no use to a job that takes no replica's."""
    kept = restored_run().saved[0]
    hopeless(run)
    run.replan(restore=PlannedRestore(None, (0,), {}, own=True))
    run.saved = {1: run.saved[1], 2: replace(kept, path=f"job/{slices_of(2)}"), 3: run.saved[3]}


def test_a_replicas_file_refutes_nothing_where_each_rank_goes_on_from_its_own(run: GoodRun, judged: Judge) -> None:
    own_files_only(run)
    judgement = judged(run)
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    assert said(judgement, "resume", "pass", f"of 4 ranks, files are left of step {SAVED}: 3")


def test_a_file_of_every_rank_refutes_the_plan_all_the_more(run: GoodRun, judged: Judge) -> None:
    kept = restored_run().saved[0]
    own_files_only(run)
    run.saved[0] = kept
    assert said(judged(run), "resume", "fail", f"step {SAVED} has a file of every rank")


def test_without_any_file_nobody_can_say_that_slices_were_lost(run: GoodRun, judged: Judge) -> None:
    hopeless(run)
    run.saved = {}
    assert said(judged(run), "resume", "unknown", "no periodic checkpoint of any rank is there")


def test_a_job_that_begins_from_the_start_without_a_word_fails(run: GoodRun, judged: Judge) -> None:
    hopeless(run)
    place: Record = {"attempt": "resume", "rank": 1, "pid": pid_of("resume", 1)}
    run.add("resume-rank_1", record(22.0, "step.begin", step=1, **place))
    assert said(judged(run), "resume", "fail", "rank 1 has recorded step.begin")


def test_a_job_that_ends_without_saying_why_is_unknown(run: GoodRun, judged: Judge) -> None:
    hopeless(run)
    run.others["logs/resume/worker_2.log"] = b"Segmentation fault\n"
    assert said(judged(run), "resume", "unknown", "the log of rank 2 does not say why it ended")


@pytest.mark.parametrize("signal", [None, 9])
def test_a_job_that_does_not_end_by_itself_is_unknown(run: GoodRun, judged: Judge, signal: int | None) -> None:
    hopeless(run)
    for event in run.events("rank.exit", attempt="resume"):
        event.update(signal=signal, code=None)
    assert said(judged(run), "resume", "unknown", "no rank of attempt resume has ended with an error of its own")


def test_who_is_ended_after_the_first_that_refused_refuses_too(run: GoodRun, judged: Judge) -> None:
    hopeless(run)
    for rank, signal in ((0, 15), (2, 9)):
        run.only("rank.exit", attempt="resume", rank=rank).update(signal=signal, code=None)
    assert said(judged(run), "resume", "pass", "2 ranks did")


def end_with_zero(run: GoodRun) -> None:
    for event in run.events("rank.exit", attempt="resume"):
        event["code"] = event["code"] if event["rank"] == 1 else 0


def no_other_exits(run: GoodRun) -> None:
    for rank in (0, 2, 3):
        run.drop("rank.exit", attempt="resume", rank=rank)


def only_one_came(run: GoodRun) -> None:
    no_other_exits(run)
    for rank in (0, 2, 3):
        run.drop("rank.found", attempt="resume", rank=rank)
        run.drop_file(f"resume-rank_{rank}")


@pytest.mark.parametrize(
    ("spoil", "verdict", "text"),
    [
        (end_with_zero, "fail", "rank 3 ended as if it had trained: exit code 0"),
        (no_other_exits, "unknown", "no exit status of rank 3 was recorded"),
        (only_one_came, "unknown", "no exit status of rank 3 was recorded"),
        (only_one_came, "unknown", "no history of rank 3 shows whether it trained"),
        (
            lambda run: run.only("rank.exit", attempt="resume", rank=3).update(code=None),
            "unknown",
            "rank 3 has ended, and its exit status is unknown",
        ),
        (
            lambda run: run.only("rank.exit", attempt="resume", rank=3).update(pid=99),
            "unknown",
            "no exit status of rank 3 was recorded",
        ),
    ],
)
def test_one_rank_that_refuses_does_not_speak_for_the_others(
    run: GoodRun, judged: Judge, spoil: Mutate, verdict: str, text: str
) -> None:
    hopeless(run)
    spoil(run)
    assert said(judged(run), "resume", verdict, text)
