"""Steps are what the training loop counts, updates what the optimizer counts; what is accumulated must not be lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from chaos.checks.history.updates import observe
from chaos.checks.judge import RunUnreadable
from chaos.checks.resume.check import NAME as RESUME
from chaos.history.reader import read_history
from tests.kit.runs.accumulating_run import ACCUMULATED, accumulated_after, accumulating, lose_accumulated
from tests.kit.runs.good_run import RANKS, SAVED, GoodRun, digests_of, good_run, pid_of, state_after, step_of
from tests.kit.runs.repaired_run import Strike, repaired_run
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, not_passed, said

EVERY = 2
"""The good run saves after step 5: in the middle of an accumulation of two steps, and after an update of five."""


def back_to_the_update() -> GoodRun:
    """The good run, whose job goes on after step 4 although its file holds step 5."""
    run = good_run()
    for rank in range(RANKS):
        place = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank)}
        run.only("train.begin", attempt="resume", rank=rank)["initial_step"] = SAVED - 1
        initial = run.only("initial", attempt="resume", rank=rank)
        initial["parameters"] = digests_of(state_after(rank, SAVED - 1))
        for record in step_of(21.2, rank, SAVED, **place):
            run.add(f"resume-rank_{rank}", record)
    return run


def waiting_in_the_next_step(run: GoodRun) -> GoodRun:
    """Each rank accumulates its own gradients. Where it saves it has begun the next step, and has those of that too."""
    run = accumulating(run, EVERY, own=True)
    for rank, saved in run.saved.items():
        saved.state[ACCUMULATED] = accumulated_after(rank, SAVED, EVERY, own=True)[ACCUMULATED] + np.float32(1)
    return run


def repaired() -> GoodRun:
    return repaired_run(Strike("uce", step=7))


GOOD: dict[str, Callable[[], GoodRun]] = {
    "end-of-life checkpoint within an accumulation": lambda: accumulating(good_run(), 2),
    "end-of-life checkpoint after an update": lambda: accumulating(good_run(), 5),
    "resume at the last update, each rank with its own": lambda: waiting_in_the_next_step(back_to_the_update()),
    "repair, each rank with its own": lambda: accumulating(repaired(), 2, own=True),
    "resume at the last update": lambda: accumulating(back_to_the_update(), 2),
    "repair": lambda: accumulating(repaired(), 2),
    "periodic checkpoint within an accumulation": lambda: accumulating(restored_run(), 2),
}


@pytest.mark.parametrize("make", GOOD.values(), ids=GOOD)
def test_a_good_recovery_of_a_job_that_accumulates_gradients_passes(make: Callable[[], GoodRun], judged: Judge) -> None:
    judgement = judged(make())
    assert not_passed(judgement) == []
    assert len(said(judgement, "history", "pass", "the optimizer makes an update once in")) == 1


def test_a_plan_that_takes_updates_for_steps_blames_nobody(judged: Judge) -> None:
    run = accumulating(good_run())
    run.replan(steps_per_update=1)
    judgement = judged(run)
    (finding,) = said(judgement, "history", "unknown", "every step makes an update")
    assert "after step 12 it had made 6: write job.steps_per_update: 2" in finding.seen
    assert judgement.verdict == "unknown"


def test_a_run_of_an_earlier_version_is_judged_as_before(judged: Judge) -> None:
    run = accumulating(good_run())
    run.replan(steps_per_update=None)
    judgement = judged(run)
    assert said(judgement, "history", "unknown", "update") == []
    assert said(judgement, "checkpoint", "fail", f"global_step of rank 0 is {SAVED}, the last step that it trained")


def test_a_plan_that_the_optimizer_contradicts_fails(judged: Judge) -> None:
    run = good_run()
    run.replan(steps_per_update=EVERY)
    (finding,) = said(judged(run), "history", "fail", "the optimizer makes an update once in 2 steps")
    assert finding.seen == "after step 12 it had made 12"


def test_without_any_count_the_number_of_steps_for_an_update_is_unknown(judged: Judge) -> None:
    run = accumulating(good_run())
    for records in (*run.files.values(), *(run.baseline or {}).values()):
        for record in records:
            if isinstance(parameters := record.get("parameters"), dict):
                del parameters["global_step"]
    assert said(judged(run), "history", "unknown", "no rank has recorded how many updates its optimizer had made")


def resume_loses(run: GoodRun) -> None:
    """The ranks load the whole file, and go on with nothing accumulated."""
    for initial in run.events("initial", attempt="resume"):
        lose_accumulated(initial["parameters"])


def update_is_not_reached(run: GoodRun) -> None:
    """The job goes back to the last update, and keeps what was accumulated behind it."""
    for initial in run.events("initial", attempt="resume"):
        kept = accumulated_after(initial["rank"], SAVED, EVERY)
        initial["parameters"][ACCUMULATED] = digests_of(kept)[ACCUMULATED]


def save_loses(run: GoodRun) -> None:
    run.saved[0].state[ACCUMULATED] = np.zeros((2, 3), np.float32)


def repair_keeps(run: GoodRun) -> None:
    """After a repair that goes back to an update, what was accumulated since is still there."""
    for initial in run.events("initial", attempt="train"):
        if initial["parameters"] == digests_of(accumulated_after(initial["rank"], 6, EVERY)):
            initial["parameters"][ACCUMULATED] = digests_of(accumulated_after(initial["rank"], 7, EVERY))[ACCUMULATED]


def later_update(run: GoodRun) -> None:
    run.saved[0].state["global_step"] = np.array([SAVED // EVERY + 1], np.int32)


def named_by_the_step(run: GoodRun) -> None:
    for saved in run.saved.values():
        saved.path = saved.path.replace(f"-step_{SAVED - 1}", f"-step_{SAVED}")


SPOILT: list[tuple[Callable[[], GoodRun], Callable[[GoodRun], None], str, str]] = [
    (good_run, resume_loses, RESUME, f"1 of 7 parameters of rank 0 are not the file's: {ACCUMULATED}"),
    (back_to_the_update, update_is_not_reached, RESUME, f"parameters of rank 0 are not the file's: {ACCUMULATED}"),
    (good_run, save_loses, "checkpoint", f"parameters of rank 0 differ: {ACCUMULATED}"),
    (
        good_run,
        later_update,
        "checkpoint",
        f"global_step of rank 0 is 2, after step {SAVED}, the last step that it trained",
    ),
    (good_run, named_by_the_step, "checkpoint", "the directory's step is that of the last update, 4"),
    (repaired, repair_keeps, RESUME, f"held another state than that of step 6: 1 differ: {ACCUMULATED}"),
    (restored_run, resume_loses, RESUME, f"parameters of rank 0 are not the file's: {ACCUMULATED}"),
    (restored_run, save_loses, "checkpoint", f"file of step {SAVED} differ: {ACCUMULATED}"),
    (restored_run, later_update, "checkpoint", f"by its record the rank has saved step {SAVED}"),
]


@pytest.mark.parametrize(("make", "spoil", "check", "reason"), SPOILT)
def test_what_is_lost_or_wrong_within_an_accumulation_fails(
    make: Callable[[], GoodRun], spoil: Callable[[GoodRun], None], check: str, reason: str, judged: Judge
) -> None:
    run = accumulating(make())
    spoil(run)
    assert said(judged(run), check, "fail", reason), not_passed(judged(run))


def test_accumulated_gradients_of_the_next_step_fail_where_the_job_goes_on_with_them(judged: Judge) -> None:
    judgement = judged(waiting_in_the_next_step(good_run()))
    assert said(judgement, "checkpoint", "fail", f"parameters of rank 0 differ: {ACCUMULATED}")


def test_accumulated_gradients_that_only_a_fault_makes_differ_are_compared(judged: Judge) -> None:
    run = accumulating(repaired())
    for digest in run.events("digest", attempt="train", rank=3, step=9):
        lose_accumulated(digest["parameters"])
    assert said(
        judged(run), "consistency", "fail", f"ranks 1 and 3 disagree after step 9 of attempt train: {ACCUMULATED}"
    )


def test_a_file_without_a_step_is_known_by_what_its_rank_had_accumulated(judged: Judge) -> None:
    run = accumulating(restored_run())
    for saved in run.saved.values():
        saved.appended = {}
    run.drop("checkpoint.begin")
    run.drop("checkpoint.end")
    judgement = judged(run)
    assert said(judgement, "resume", "pass", f"training goes on at step {SAVED + 1}")


@pytest.mark.parametrize("every", [-1, 10**12])
def test_a_plan_of_no_number_of_steps_is_refused(every: int, judged: Judge) -> None:
    run = good_run()
    run.replan(steps_per_update=every)
    with pytest.raises(RunUnreadable, match=f"{every} steps for one update of the optimizer cannot be judged"):
        judged(run)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_the_steps_for_an_update_are_seen_in_the_fault_free_run(every: int, tmp_path: Path) -> None:
    directory = accumulating(good_run(), every).write(tmp_path / "run")
    observed = observe(read_history(directory / "baseline" / "history"))
    assert observed is not None
    assert observed.steps_per_update == every


def test_an_optimizer_that_skips_updates_tells_no_number_of_steps(tmp_path: Path) -> None:
    run = good_run()
    for records in (*run.files.values(), *(run.baseline or {}).values()):
        for record in records:
            if record["event"] == "digest" and record["step"] == 4:
                record["parameters"]["global_step"] = digests_of(state_after(0, 2))["global_step"]
    directory = run.write(tmp_path / "run")
    assert observe(read_history(directory / "baseline" / "history")) is None
