"""Each defect of a recovery is caught: by the check that is there for it, as a failure, and with the right reason.

One thing is changed in a good run at a time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kit.runs.good_run import (
    LAST,
    SAVED,
    UNDO,
    GoodRun,
    Mutate,
    Record,
    Saved,
    digests_of,
    float_hex_next,
    hex_of,
    ledger,
    loss_after,
    pid_of,
    record,
    state_after,
)
from tests.unit.checks.judging import Judge, cases_of, not_passed, resumed_job_dies, said

TMP = f"job/checkpoints/ttp_saved_checkpoints-step_{SAVED}_tmp"
DONE = f"job/checkpoints/ttp_saved_checkpoints-step_{SAVED}"
SURVIVOR: Record = {"attempt": "train", "rank": 0, "pid": pid_of("train", 0)}


def after(record_: Record, step: int) -> bool:
    return int(record_["step"]) >= step


def resumed(run: GoodRun, rank: int | None = None) -> list[Record]:
    match: Record = {"attempt": "resume"} if rank is None else {"attempt": "resume", "rank": rank}
    return list(run.events("digest", **match))


def store(run: GoodRun, rank: int, **appended: int) -> None:
    run.saved[rank].appended.update(appended)


def stale(run: GoodRun, rank: int, prefix: str, step: int) -> None:
    old = state_after(rank, step)
    run.saved[rank].state.update({name: old[name] for name in old if name.startswith(prefix)})


def moments_missing(run: GoodRun) -> None:
    state = run.saved[0].state
    for name in [name for name in state if name.startswith("moments.")]:
        del state[name]


def moments_zeroed(run: GoodRun) -> None:
    state = run.saved[1].state
    state["moments.layer1.weight"] = np.zeros_like(state["moments.layer1.weight"])


def one_bit(run: GoodRun) -> None:
    weight = run.saved[1].state["layer1.weight"] = run.saved[1].state["layer1.weight"].copy()
    weight.view(np.uint32)[0, 0] ^= 1


def not_finite(run: GoodRun) -> None:
    weight = run.saved[0].state["layer1.weight"] = run.saved[0].state["layer1.weight"].copy()
    weight[0, 0] = np.nan


def older_step_under_this_name(run: GoodRun) -> None:
    for rank, saved in run.saved.items():
        saved.state = state_after(rank, SAVED - 1)
        saved.appended["step_num"] = SAVED - 1


def old_values_under_this_step(run: GoodRun) -> None:
    run.saved[0].state = {**state_after(0, SAVED - 1), "global_step": np.array([SAVED], np.int32)}


def global_step_lost(run: GoodRun) -> None:
    run.saved[0].state["global_step"] = np.array([0], np.int32)


def learning_rate_reset(run: GoodRun) -> None:
    run.saved[0].state["learning_rate"] = np.array(0.2, np.float32)


def saved_by_the_dead(run: GoodRun) -> None:
    run.saved[0].path = run.saved[0].path.replace("rank_0", "rank_2")


def saved_twice_in_a_group(run: GoodRun) -> None:
    path = run.saved[1].path.replace("rank_1", "rank_3")
    run.saved[3] = Saved(path, state_after(3, SAVED), {**run.saved[1].appended, "cur_rank": 3})


def group_missing(run: GoodRun) -> None:
    del run.saved[1]


def never_renamed(run: GoodRun) -> None:
    for saved in run.saved.values():
        saved.path = saved.path.replace(DONE, TMP)


def empty_tmp_left(run: GoodRun) -> None:
    run.others[f"{TMP}/rank_3/.keep"] = b""


def truncated(run: GoodRun) -> None:
    run.saved[0].keep = len(run.saved[0].content()) - 20


def empty_file(run: GoodRun) -> None:
    run.saved[0].keep = 0


def flipped_but_loads(run: GoodRun) -> None:
    content = run.saved[1].content()
    run.saved[1].flip = content.index(run.saved[1].state["moments.layer1.bias"].tobytes())


def directory_lies(run: GoodRun) -> None:
    for saved in run.saved.values():
        saved.path = saved.path.replace("step_5", "step_6")


def name_lies(run: GoodRun) -> None:
    run.saved[0].path = run.saved[0].path.replace("-1_5", "-1_4")


def epoch_lies(run: GoodRun) -> None:
    store(run, 0, epoch_num=2)
    store(run, 1, epoch_num=2)


def other_ranks_content(run: GoodRun) -> None:
    store(run, 1, cur_rank=3)


def other_groups_values(run: GoodRun) -> None:
    run.saved[1].state = state_after(0, SAVED)


def unknown_parameter(run: GoodRun) -> None:
    run.saved[0].state["layer9.weight"] = np.zeros(2, np.float32)


def inconsistent_flag(run: GoodRun) -> None:
    run.saved[0].state["tft_g_one_flag"] = np.array([4], np.int32)


def no_step_inside(run: GoodRun) -> None:
    del run.saved[0].appended["step_num"]
    del run.saved[0].state["global_step"]


def batch_numbers_disagree(run: GoodRun) -> None:
    store(run, 0, batch_num=LAST + 1)


def save_of_another_step(run: GoodRun) -> None:
    run.only("checkpoint.end", rank=1)["step"] = 4


def saved_by_another_rank_too(run: GoodRun) -> None:
    run.add("train-rank_2", record(10.45, "handler.enter", name="save_ckpt", attempt="train", rank=2, pid=1002))


def planned_other_step(run: GoodRun) -> None:
    assert run.plan.checkpoint is not None
    run.replan(checkpoint=replace(run.plan.checkpoint, step=4), resume_step=None)


def none_was_planned(run: GoodRun) -> None:
    run.without_resume()
    run.replan(checkpoint=None, mechanism="none")


def a_survivor_trained_on(run: GoodRun) -> None:
    place: Record = {"attempt": "train", "rank": 3, "pid": pid_of("train", 3)}
    run.add("train-rank_3", record(10.6, "step.end", step=SAVED + 1, **place))


CHECKPOINT: list[tuple[Mutate, str]] = [
    (a_survivor_trained_on, "step 5 is the last one that any survivor trained | rank 3 trained step 6"),
    (older_step_under_this_name, "step_num 4 is stored"),
    (lambda run: store(run, 0, step_num=SAVED + 1), "step_num 6 is stored"),
    (old_values_under_this_step, f"of step {SAVED - 1})"),
    (moments_missing, "lacks optimizer state: moments.layer1.bias, moments.layer1.weight"),
    (moments_zeroed, "1 of 6 parameters of rank 1 differ: moments.layer1.weight"),
    (lambda run: stale(run, 0, "moments.", SAVED - 1), "2 of 6 parameters of rank 0 differ: moments.layer1.bias"),
    (one_bit, "1 of 6 parameters of rank 1 differ: layer1.weight"),
    (not_finite, "not finite in rank 0's file: layer1.weight"),
    (global_step_lost, "global_step 0 is stored"),
    (learning_rate_reset, "learning_rate"),
    (saved_by_the_dead, "rank 2 saved without being entitled to"),
    (saved_by_another_rank_too, "rank 2 saved without being entitled to"),
    (saved_twice_in_a_group, "2 files"),
    (group_missing, "no checkpoint of replica group [1, 3]"),
    (never_renamed, "ttp_saved_checkpoints-step_5_tmp is left"),
    (empty_tmp_left, "ttp_saved_checkpoints-step_5_tmp is left"),
    (truncated, "rank 0's file is damaged"),
    (empty_file, "the file is empty"),
    (flipped_but_loads, "1 of 6 parameters of rank 1 differ: moments.layer1.bias"),
    (directory_lies, "the directory's step is the stored one, 5 | it is 6"),
    (name_lies, "rank 0's file is named 1_4"),
    (epoch_lies, "the name's epoch is the stored one, 2"),
    (other_ranks_content, "cur_rank 3 is stored"),
    (other_groups_values, f"is rank 0's of step {SAVED})"),
    (unknown_parameter, "holds what the job does not have: layer9.weight"),
    (inconsistent_flag, "tft_g_one_flag is 4"),
    (no_step_inside, "neither step_num nor global_step"),
    (batch_numbers_disagree, "rank 0: 13"),
    (save_of_another_step, "rank 1 recorded a save of step 4"),
    (planned_other_step, "the checkpoint holds step 4"),
    (none_was_planned, "no end-of-life checkpoint is finished"),
]


def one_step_back(run: GoodRun) -> None:
    for event in [
        *run.events("step.begin", attempt="resume", rank=1),
        *run.events("step.end", attempt="resume", rank=1),
    ]:
        event["step"] -= 1


def one_step_forward(run: GoodRun) -> None:
    run.drop("step.begin", attempt="resume", rank=1, step=SAVED + 1)
    run.drop("step.end", attempt="resume", rank=1, step=SAVED + 1)


def batch_skipped(run: GoodRun) -> None:
    for event in resumed(run, 2):
        event["batch"] = hex_of("batch", 2, event["step"] + 1)


def batch_twice(run: GoodRun) -> None:
    for event in resumed(run, 2):
        event["batch"] = hex_of("batch", 2, event["step"] - 1)


def other_data(run: GoodRun) -> None:
    for event in resumed(run, 0):
        event["batch"] = hex_of("shuffled again", event["step"])


def step_twice(run: GoodRun) -> None:
    again = run.only("step.begin", attempt="resume", rank=0, step=8)
    run.add("resume-rank_0", {**again, "mono": again["mono"] + 1})


def step_left_out(run: GoodRun) -> None:
    run.drop("step.begin", attempt="resume", rank=0, step=8)
    run.drop("step.end", attempt="resume", rank=0, step=8)


def step_twice_before(run: GoodRun) -> None:
    again = run.only("step.end", attempt="train", rank=3, step=2)
    run.add("train-rank_3", {**again, "mono": again["mono"] + 1})


def periodic_chosen(run: GoodRun) -> None:
    path = "checkpoints/rank_3/net-1_4.ckpt"
    run.saved[9] = Saved(f"job/{path}", state_after(3, 4), {})
    for event in [*run.events("load.begin", rank=3), *run.events("load.end", rank=3)]:
        event["path"] = path


def other_group_loaded(run: GoodRun) -> None:
    for event in [*run.events("load.begin", rank=3), *run.events("load.end", rank=3)]:
        event["path"] = event["path"].replace("rank_1", "rank_0")


def stops_early(run: GoodRun) -> None:
    for step in range(10, LAST + 1):
        for event in ("step.begin", "step.end", "digest"):
            run.drop(event, attempt="resume", rank=3, step=step)


def never_came_back(run: GoodRun) -> None:
    run.drop_file("resume-rank_3")
    run.drop("rank.found", attempt="resume", rank=3)


def load_broken_off(run: GoodRun) -> None:
    run.drop("load.end", rank=2)


def initial(run: GoodRun, rank: int) -> dict[str, str]:
    parameters = run.only("initial", attempt="resume", rank=rank)["parameters"]
    assert isinstance(parameters, dict)
    return parameters


def moments_not_restored(run: GoodRun) -> None:
    initial(run, 2)["moments.layer1.weight"] = hex_of("zeros")


def global_step_not_restored(run: GoodRun) -> None:
    initial(run, 2).update(digests_of({"global_step": np.array([0], np.int32)}))


def from_the_wrong_replica(run: GoodRun) -> None:
    initial(run, 2).update(digests_of(state_after(1, SAVED)))


def from_the_dead_ranks_old_weights(run: GoodRun) -> None:
    initial(run, 2).update(digests_of(state_after(2, SAVED - 2)))


def counter_not_restored(run: GoodRun) -> None:
    run.only("train.begin", attempt="resume", rank=1)["initial_step"] = 0


def batch_twice_in_a_step(run: GoodRun) -> None:
    again = dict(run.only("digest", attempt="resume", rank=1, step=8))
    run.add("resume-rank_1", {**again, "mono": again["mono"] + 1})


def file_of_another_run(run: GoodRun) -> None:
    for event in (*run.events("load.begin", rank=3), *run.events("load.end", rank=3)):
        event["path"] = f"/elsewhere/r0/job/{event['path']}"


RESUME: list[tuple[Mutate, str]] = [
    (batch_twice_in_a_step, "rank 1 trained a batch of step 8 twice in attempt resume"),
    (
        lambda run: run.drop("step.end", attempt="resume", rank=1, step=6),
        "rank 1 began step 6 in attempt resume and did not end it",
    ),
    (file_of_another_run, "rank 3 loaded a file of another run, job/checkpoints/"),
    (one_step_back, "rank 1 began with step 5"),
    (one_step_forward, "rank 1 began with step 7"),
    (batch_skipped, "another batch at step 6: the baseline's batch of step 7, so a batch was skipped"),
    (batch_twice, "another batch at step 6: the baseline's batch of step 5, so a batch was trained twice"),
    (other_data, "which the baseline never trained on this rank"),
    (step_twice, "rank 0 trained step 8 twice in attempt resume"),
    (step_left_out, "rank 0 skipped step 8 in attempt resume"),
    (step_twice_before, "rank 3 trained step 2 twice in attempt train"),
    (periodic_chosen, "rank 3 loaded job/checkpoints/rank_3/net-1_4.ckpt, which is not an end-of-life checkpoint"),
    (other_group_loaded, "rank 3 loaded rank 0's file, of another replica group"),
    (stops_early, "rank 3 stopped after step 9"),
    (never_came_back, "rank 3 did not come back"),
    (load_broken_off, "a load of rank 2 did not"),
    (moments_not_restored, "1 of 6 parameters of rank 2 are not the file's: moments.layer1.weight"),
    (global_step_not_restored, "are not the file's: global_step"),
    (from_the_wrong_replica, "parameters of rank 2 are not the file's"),
    (from_the_dead_ranks_old_weights, "parameters of rank 2 are not the file's"),
    (counter_not_restored, "rank 1's step counter was 0"),
    (lambda run: run.replan(resume_step=7), "training goes on at step 7"),
]


def drift(run: GoodRun, rank: int) -> None:
    for event in resumed(run, rank):
        if after(event, 8):
            event["loss"] = float(np.float32(loss_after(rank, event["step"]) * (1 + 1e-6))).hex()


def right_on_rank_0_only(run: GoodRun) -> None:
    for rank in (1, 2, 3):
        drift(run, rank)


def last_bit_of_the_loss(run: GoodRun) -> None:
    one = run.only("digest", attempt="resume", rank=2, step=LAST)
    one["loss"] = float_hex_next(one["loss"])


def diverged(run: GoodRun) -> None:
    run.only("digest", attempt="resume", rank=2, step=9)["loss"] = "nan"


def no_gradient(run: GoodRun) -> None:
    run.only("digest", attempt="resume", rank=1, step=7)["gradients"]["norm"] = (0.0).hex()


def infinite_gradient(run: GoodRun) -> None:
    run.only("digest", attempt="resume", rank=1, step=7)["gradients"]["norm"] = "inf"


def weights_stand_still(run: GoodRun) -> None:
    for event in resumed(run, 1):
        event["parameters"].update(
            {name: value for name, value in initial(run, 1).items() if name.startswith("layer1")}
        )


def other_end(run: GoodRun) -> None:
    run.only("digest", attempt="resume", rank=0, step=LAST)["parameters"]["layer1.bias"] = hex_of("other")


def schedule_not_restored(run: GoodRun) -> None:
    for rank in range(4):
        for event in resumed(run, rank):
            event["parameters"]["learning_rate"] = hex_of("warm up again", event["step"])


LOSS: list[tuple[Mutate, str]] = [
    (lambda run: drift(run, 0), "first at rank 0, step 8"),
    (right_on_rank_0_only, "first at rank 1, step 8"),
    (last_bit_of_the_loss, "first at rank 2, step 12"),
    (diverged, "rank 2 has loss nan at step 9"),
    (no_gradient, "the norm is 0.0 on rank 1 at step 7"),
    (infinite_gradient, "the norm is inf on rank 1 at step 7"),
    (weights_stand_still, "no weight of rank 1 has changed up to step 12"),
    (other_end, "first at rank 0, step 12: 1 differ: layer1.bias"),
    (schedule_not_restored, "first at rank 0, step 6: 1 differ: learning_rate"),
]


def ranks_disagree(run: GoodRun) -> None:
    run.only("digest", attempt="resume", rank=3, step=9)["parameters"]["layer1.weight"] = hex_of("other")


def ranks_disagree_before(run: GoodRun) -> None:
    run.only("digest", attempt="train", rank=0, step=3)["parameters"]["moments.layer1.bias"] = hex_of("other")


def ranks_begin_apart(run: GoodRun) -> None:
    initial(run, 3)["layer1.weight"] = hex_of("other")


CONSISTENCY: list[tuple[Mutate, str]] = [
    (ranks_disagree, "ranks 1 and 3 disagree after step 9 of attempt resume: layer1.weight"),
    (ranks_disagree_before, "ranks 0 and 2 disagree after step 3 of attempt train: moments.layer1.bias"),
    (ranks_begin_apart, "ranks 1 and 3 disagree before the first step of attempt resume"),
]


def handler(name: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.add("train-rank_0", record(11.18, "handler.enter", name=name, **SURVIVOR))
        run.add("train-rank_0", record(11.19, "handler.exit", name=name, ok=True, **SURVIVOR))

    return spoil


def told_twice(run: GoodRun) -> None:
    run.add("train-rank_0", record(11.4, "handler.enter", name="save_ckpt", **SURVIVOR))


def renamed_twice(run: GoodRun) -> None:
    run.add("train-rank_0", record(11.6, "handler.enter", name="rename", **SURVIVOR))


def save_failed(run: GoodRun) -> None:
    run.only("handler.exit", name="save_ckpt", rank=0).update(ok=False, error="disk full")


def restarted_within(run: GoodRun) -> None:
    run.add("harness", record(11.0, "rank.found", attempt="train", rank=2, pid=1999, start_time=300))


def nothing_acted(run: GoodRun) -> None:
    run.drop("handler.enter")
    run.drop("handler.exit")
    run.drop("checkpoint.begin")
    run.drop("checkpoint.end")
    run.saved.clear()
    run.log = run.log[:1]


def claims_without_trace(run: GoodRun) -> None:
    run.drop("handler.enter", name="save_ckpt")
    run.drop("handler.enter", name="rename")
    run.log = run.log[:1]


def acted_after_the_resume(run: GoodRun) -> None:
    place: Record = {"attempt": "resume", "rank": 0, "pid": pid_of("resume", 0)}
    run.add("resume-rank_0", record(23.0, "handler.enter", name="rollback", **place))


def acted_unplanned(run: GoodRun) -> None:
    run.without_resume()
    run.replan(mechanism="none", recoveries=(), checkpoint=None)
    run.saved.clear()


def started_again_after_the_resume(run: GoodRun) -> None:
    run.add("resume-rank_1", record(13.95, "agent.start", "resume", 1, 77, python="3.11", argv=["train.py"]))


MECHANISM: list[tuple[Mutate, str]] = [
    (started_again_after_the_resume, "rank 1 was started again in attempt resume: processes 2001, 77"),
    (handler("repair"), "online repair acted: handler repair on rank 0"),
    (handler("rollback"), "online repair acted: handler rollback on rank 0"),
    (handler("clean"), "online repair acted: handler clean on rank 0"),
    (handler("rebuild_group"), "ARF acted: handler rebuild_group on rank 0"),
    (lambda run: run.log.insert(2, (11.12, "nextState: STATE_OP_REPAIR")), "online repair acted: the SDK's log: state"),
    (lambda run: run.log.insert(2, (11.12, "Start do arf repair")), "ARF acted: the SDK's log: repair_begin"),
    (told_twice, "rank 0 was told to save 2 times"),
    (renamed_twice, "renamed 2 times"),
    (lambda run: run.log.append((11.7, "finish rename, rank:1")), "renamed 2 times by the SDK's log"),
    (save_failed, "handler save_ckpt failed on rank 0: disk full"),
    (restarted_within, "rank 2 was started again"),
    (nothing_acted, "it did not act"),
    (claims_without_trace, "though others were recorded"),
    (acted_after_the_resume, "online repair acted: handler rollback on rank 0"),
    (acted_unplanned, "TTP acted"),
]


def budget(name: str, seconds: float) -> Mutate:
    def spoil(run: GoodRun) -> None:
        phases = {**run.plan.response.budget.phases, name: seconds}
        run.replan(budget=replace(run.plan.response.budget, phases=phases))

    return spoil


RECOVERY: list[tuple[Mutate, str]] = [
    (budget("detection", 0.599999999), "detection ≤ 0.6 s | 0.600 s"),
    (budget("relaunch", 8.1), "relaunch ≤ 8.1 s | 8.170 s"),
    (lambda run: run.replan(budget=replace(run.plan.response.budget, total=11.8)), "total ≤ 11.8 s | 11.830 s"),
]


def left(**what: object) -> Mutate:
    return lambda run: run.only("hygiene").update(what)


def left_behind(run: GoodRun) -> None:
    orphans = [{"pid": 901, "cmdline": ["msrun"]}, {"pid": 78, "cmdline": ["python", "helper.py"]}]
    run.add("harness", record(11.95, "job.leftovers", "train", orphans=orphans))


def open_undo(run: GoodRun) -> None:
    run.others["undo.jsonl"] = ledger(UNDO)


HYGIENE: list[tuple[Mutate, str]] = [
    (left(orphans=[{"pid": 77, "cmdline": ["python", "train.py"]}]), "processes left: 77 (python train.py)"),
    (left_behind, "outlived the ranks of attempt train: 78 (python helper.py)"),
    (left(ports=[8118]), "ports still open: 8118"),
    (left(stale=["/x/job/checkpoints/a.tmp"]), "stale files: job/checkpoints/a.tmp"),
    (left(private_left=True), "private directory"),
    (open_undo, "undo step job is still open: end the job"),
    (
        lambda run: run.others.update({"job/checkpoints/rank_0/a.tmp": b"x"}),
        "unfinished files: job/checkpoints/rank_0/",
    ),
    (lambda run: run.only("rank.exit", attempt="train", rank=1).update(code=0), "ends with exit code 1 | exit code 0"),
    (lambda run: run.only("rank.exit", attempt="train", rank=1).update(code=None, signal=11), "ended by SIGSEGV"),
    (lambda run: run.only("rank.exit", attempt="resume", rank=3).update(code=1), "rank 3 of attempt resume"),
    (lambda run: run.only("launcher.exit", attempt="resume").update(code=1), "the launcher of attempt resume"),
]


def landed_again(run: GoodRun) -> None:
    again = run.only("fault.landed")
    run.add("harness", {**again, "mono": again["mono"] + 1})


def injected_again_after_the_resume(run: GoodRun) -> None:
    again = run.only("fault.injecting")
    run.add("harness", {**again, "attempt": "resume", "pid": pid_of("resume", 2), "mono": again["mono"] + 13 * 10**9})


INJECTION: list[tuple[Mutate, str]] = [
    (landed_again, "injected twice: 2 landings"),
    (injected_again_after_the_resume, "injected twice: 1 landings, 2 injections"),
]


def expired(name: str, at: float, attempt: str | None) -> Mutate:
    detail = "rank 1 has not exited"
    event = record(at, "deadline.expired", attempt, name=name, seconds=300, detail=detail)
    return lambda run: run.add("harness", event)


RUN: list[tuple[Mutate, str]] = [
    (resumed_job_dies(given_up=25.01), "rank 1 ended with exit code 1: rank 1 (exit code 1) ended before"),
    (expired("end", 20.0, "train"), "deadline end (300 s) is kept | it ran out: rank 1 has not exited"),
    (expired("start", 20.0, "resume"), "deadline start (300 s) is kept"),
]

SEEDED = cases_of(
    {
        "checkpoint": CHECKPOINT,
        "resume": RESUME,
        "loss": LOSS,
        "consistency": CONSISTENCY,
        "mechanism": MECHANISM,
        "recovery": RECOVERY,
        "hygiene": HYGIENE,
        "injection": INJECTION,
        "run": RUN,
    }
)


@pytest.mark.parametrize(("check", "spoil", "reason"), SEEDED)
def test_defect_is_caught_for_its_reason(run: GoodRun, judged: Judge, check: str, spoil: Mutate, reason: str) -> None:
    spoil(run)
    judgement = judged(run)
    assert said(judgement, check, "fail", reason), not_passed(judgement)
    assert judgement.verdict == "fail"


def test_every_failure_says_where_to_look(run: GoodRun, judged: Judge) -> None:
    one_bit(run)
    (own, against_baseline) = said(judged(run), "checkpoint", "fail", "layer1.weight")
    assert own.where == (run.saved[1].path, "history/train-rank_1-1001.jsonl:20")
    assert against_baseline.where[1] == "baseline/history/train-rank_1-501.jsonl:20"


def test_a_failure_names_the_line_of_the_scenario(run: GoodRun, judged: Judge) -> None:
    budget("detection", 0.5)(run)
    (finding,) = said(judged(run), "recovery", "fail", "detection")
    assert finding.where[0] == "scenario.yaml:27"


def test_many_defects_of_a_kind_are_counted_not_listed(run: GoodRun, judged: Judge) -> None:
    for event in run.events("digest", attempt="resume"):
        event["gradients"]["norm"] = (0.0).hex()
    findings = said(judged(run), "loss", "fail", "the norm is")
    assert len(findings) == 6
    assert "23 more of the same kind" in findings[-1].seen
