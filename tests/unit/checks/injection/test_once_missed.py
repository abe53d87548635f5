"""Evidence that contradicts itself, or tells of one part only, is no proof: runs that are good but for that."""

from __future__ import annotations

import pytest

from tests.kit.hosts.two_hosts import Host, on_hosts
from tests.kit.runs.good_run import FAULT, RANKS, SAVED, GoodRun, Record, Saved, pid_of, record, state_after
from tests.kit.runs.repaired_run import uce_run
from tests.kit.runs.rolled_back_run import SPIKE, checkpoint_of, rolled_back_run, spiked
from tests.unit.checks.judging import Judge, cases_of, said


def moved(run: GoodRun, event: str, at: float, **match: object) -> None:
    """It was recorded at another time."""
    one = run.only(event, **match)
    one.update({key: record(at, event)[key] for key in ("mono", "wall")})
    for records in run.files.values():
        records.sort(key=lambda own: int(own["mono"]))


def renamed_too_early(run: GoodRun) -> None:
    """A rank that saves is not done when the directory gets its name."""
    renamed = run.only("handler.exit", name="rename")
    late = next(event for event in run.events("handler.exit", name="save_ckpt") if event["rank"] != renamed["rank"])
    late.update({key: renamed[key] + 1_000_000 for key in ("mono", "wall")})
    for records in run.files.values():
        records.sort(key=lambda own: int(own["mono"]))


def end_of_save_untold(run: GoodRun) -> None:
    next(run.events("handler.exit", name="save_ckpt")).pop("ok")


def moments_untold(run: GoodRun) -> None:
    own = run.only("initial", attempt="resume", rank=1)
    own["parameters"] = {
        name: parameter for name, parameter in own["parameters"].items() if not name.startswith("moments.")
    }


def flag_not_saved(run: GoodRun) -> None:
    """The rank has a flag, and its file has none."""
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] in ("initial", "digest"):
                event["parameters"] = {**event["parameters"], "tft_g_one_flag": "0" * 32}


def losses_of_one_replica_untold(run: GoodRun) -> None:
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] == "digest" and event["rank"] == 2 and event["step"] > SAVED:
                event["loss"] = None


def baseline_batch_untold(run: GoodRun) -> None:
    assert run.baseline is not None
    for event in (entry for records in run.baseline.values() for entry in records):
        if event["event"] == "digest" and (event["rank"], event["step"]) == (1, SAVED + 2):
            event["batch"] = None


MISSED = {
    "mechanism": [
        (renamed_too_early, "had saved"),
        (end_of_save_untold, "how handler save_ckpt ended on rank"),
    ],
    "resume": [
        (moments_untold, "rank 1 has recorded no digests of moments.layer1.bias, moments.layer1.weight"),
        (baseline_batch_untold, "the baseline has recorded no batch of rank 1 at step 7"),
    ],
    "checkpoint": [(flag_not_saved, "rank 0's file lacks tft_g_one_flag")],
    "loss": [(losses_of_one_replica_untold, "no loss of rank 2 at step 6, here or in the baseline")],
    "hygiene": [
        (lambda run: moved(run, "hygiene", 12.2), "no check was made after attempt resume had started"),
        (lambda run: moved(run, "fault.healed", 10.4), f"fault {FAULT} was made again after its last healing"),
        (
            lambda run: moved(run, "rank.exit", 20.0, attempt="resume", rank=1),
            f"process {pid_of('resume', 1)} has recorded agent.cost after its exit: it is another's",
        ),
    ],
}


@pytest.mark.parametrize(("check", "spoil", "reason"), cases_of(MISSED))
def test_it_is_no_pass(run: GoodRun, judged: Judge, check: str, spoil: object, reason: str) -> None:
    assert judged(run).verdict == "pass"
    assert callable(spoil)
    spoil(run)
    judgement = judged(run)
    assert judgement.verdict in ("unknown", "fail")
    assert said(judgement, check, "unknown", reason) or said(judgement, check, "fail", reason), judgement.findings


def test_an_end_that_the_clocks_of_two_hosts_do_not_tell_from_a_step_is_none(run: GoodRun, judged: Judge) -> None:
    """Only what surely came after the exit doubts it."""
    last = next(event for event in run.events("agent.cost", attempt="resume", rank=3))
    moved(run, "rank.exit", 0.0, attempt="resume", rank=3)
    run.only("rank.exit", attempt="resume", rank=3).update({key: last[key] - 50_000 for key in ("mono", "wall")})
    run.files["harness.jsonl"].sort(key=lambda own: int(own["mono"]))
    on_hosts(run, Host("h2", (3,)))
    assert not said(judged(run), "hygiene", "unknown", "after its exit")


def test_of_several_nodes_the_launcher_of_each_is_asked_for(run: GoodRun, judged: Judge) -> None:
    def of_node(event: Record, rank: int) -> None:
        event["node"] = rank % 2

    for rank in range(RANKS):
        of_node(run.only("rank.found", attempt="resume", rank=rank), rank)
    own = run.only("launcher.exit", attempt="resume")
    own["node"] = 0
    assert said(judged(run), "hygiene", "unknown", "no exit status of the launcher of node 1 was recorded")
    run.add("harness", {**own, "mono": own["mono"] + 1, "node": 1})
    assert not said(judged(run), "hygiene", "unknown", "no exit status of the launcher of node")


def test_a_rank_that_is_started_twice_in_the_resume_is_found_behind_a_repair_too(judged: Judge) -> None:
    """Also where the faulted launch went on by itself before another fault ended it."""
    run = uce_run()
    for pid in (71, 72):
        run.add("harness", record(30.0, "rank.found", attempt="resume", rank=1, pid=pid, start_time=pid))
    assert said(judged(run), "mechanism", "fail", "rank 1 was started again in attempt resume: processes 71, 72")


def test_a_batch_that_only_the_baseline_lacks_is_not_known_behind_a_repair_either(judged: Judge) -> None:
    run = uce_run()
    baseline_batch_untold(run)
    assert said(judged(run), "resume", "unknown", "the baseline has recorded no batch of rank 1 at step 7")


def newest(rank: int) -> str:
    return f"job/{checkpoint_of(rank, 12).partition('/job/')[2]}"


def test_what_a_rank_has_saved_last_must_be_there(judged: Judge) -> None:
    run = rolled_back_run()
    del run.others[newest(1)]
    judgement = judged(run)
    assert said(
        judgement, "checkpoint", "fail", "rank 1 has saved job/checkpoints/rank_1/mnist-1_12.ckpt after step 12"
    )
    assert judgement.verdict == "fail"


def test_where_no_file_was_kept_it_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    for rank in range(RANKS):
        del run.others[newest(rank)]
    assert said(judged(run), "checkpoint", "unknown", "no file of any rank was kept")


def test_a_file_that_the_job_has_renamed_is_known_by_its_step(judged: Judge) -> None:
    run = rolled_back_run()
    run.others["job/checkpoints/rank_1/final-1_12.ckpt"] = run.others.pop(newest(1))
    assert not said(judged(run), "checkpoint", "fail", "which is not there")


@pytest.mark.parametrize("abnormal", [True, False])
def test_a_file_that_was_saved_after_a_rollback_holds_nothing_of_before(judged: Judge, abnormal: bool) -> None:
    """Step 8 was trained again, and what its first training came to was saved all the same."""
    run = rolled_back_run()
    *_, again = run.events("digest", rank=1, step=SPIKE)
    for number, event in enumerate(("checkpoint.begin", "checkpoint.end"), 1):
        later = {key: again[key] + 1000 * number for key in ("mono", "wall")}
        own = {key: again[key] for key in ("attempt", "rank", "pid", "step")}
        run.add("train-rank_1", {"event": event, "kind": "periodic", "path": checkpoint_of(1, SPIKE), **own, **later})
    path = f"job/{checkpoint_of(1, SPIKE).partition('/job/')[2]}"
    run.others[path] = Saved(path, spiked(1, SPIKE) if abnormal else state_after(1, SPIKE), {}).content()
    judgement = judged(run)
    assert judgement.verdict == ("fail" if abnormal else "pass")
    assert bool(said(judgement, "checkpoint", "fail", "parameters in rank 1's file of step 8 differ")) == abnormal


def test_older_files_may_be_gone(judged: Judge) -> None:
    assert state_after(0, 3)["global_step"] == 3  # nobody has kept what was saved after step 3
    assert said(judged(rolled_back_run()), "checkpoint", "pass", "the last checkpoints of 4 ranks are there")
