"""A good rollback (TRE) passes; each defect of one is caught by the check that is there for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chaos.checks.registry import BUILT_IN
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault_tolerance import Watch
from chaos.plan.parts.recovery_options import RecoveryOptions
from tests.kit.runs.good_run import GoodRun, Mutate, Saved, digests_of, record, state_after
from tests.kit.runs.repaired_run import place_of
from tests.kit.runs.rolled_back_run import AT, HELD, NORM, PHASES_S, RECORD, SPIKE, SPIKER, log_of, rolled_back_run
from tests.unit.checks.judging import Judge, said


@pytest.mark.parametrize("repeat", [0, 1])
def test_a_good_rollback_passes_every_check(judged: Judge, repeat: int) -> None:
    judgement = judged(rolled_back_run(repeat))
    assert [
        (finding.verdict, finding.check, finding.expected, finding.seen)
        for finding in judgement.findings
        if finding.verdict != "pass"
    ] == []
    assert {finding.check for finding in judgement.findings} == set(BUILT_IN)
    assert any(exclusion.check == "loss" for exclusion in judgement.not_checked) == bool(repeat)


def _second_time(run: GoodRun) -> int:
    begins = list(run.events("step.begin", rank=SPIKER, step=SPIKE))
    return int(begins[-1]["mono"]) + 1000


def test_its_phases_add_up(judged: Judge) -> None:
    recovery = judged(rolled_back_run()).recovery
    assert recovery.mechanism == "TRE"
    assert {phase.name: phase.seconds for phase in recovery.phases} == pytest.approx(PHASES_S)
    assert recovery.total == sum(phase.nanoseconds or 0 for phase in recovery.phases)


def test_what_is_not_compared_after_a_repeated_spike_is_listed(judged: Judge) -> None:
    left = judged(rolled_back_run(1)).not_checked
    assert [exclusion.what for exclusion in left if exclusion.check == "loss"] == [
        f"losses after step {SPIKE} against the fault-free run",
        f"weights and optimizer state after step {SPIKE - 1} against the fault-free run",
    ]


def another_checkpoint(run: GoodRun) -> None:
    for event in ("load.begin", "load.end"):
        for entry in run.events(event, rank=2):
            entry["path"] = entry["path"].replace("1_6", "1_3")


def one_rank_does_not_load(run: GoodRun) -> None:
    run.drop("load.begin", rank=3)
    run.drop("load.end", rank=3)


def loads_twice(run: GoodRun) -> None:
    for event in ("load.begin", "load.end"):
        entry = run.only(event, rank=0)
        run.add("train-rank_0", {**entry, "mono": entry["mono"] + 1})


def a_handler_is_called(run: GoodRun) -> None:
    run.add("train-rank_0", record(AT + 0.2, "handler.enter", name="stop", **place_of(0)))


def a_new_process(run: GoodRun) -> None:
    run.add("harness", record(AT + 0.3, "rank.found", attempt="train", rank=2, pid=7777, start_time=1))


def not_logged(run: GoodRun) -> None:
    run.others["logs/train/worker_2.log"] = b"epoch: 1 step: 1, loss is 2.3\n"


def resumed_elsewhere(run: GoodRun) -> None:
    run.others["logs/train/worker_2.log"] = log_of().replace(f"from step {HELD}", "from step 3").encode()


def no_record(run: GoodRun) -> None:
    del run.others[RECORD]


def recorded_twice(run: GoodRun) -> None:
    run.others[RECORD] = json.dumps({str(SPIKE): [NORM, NORM]}).encode()


def another_step_recorded(run: GoodRun) -> None:
    run.others[RECORD] = json.dumps({str(SPIKE): [NORM], "4": [9.0]}).encode()


def another_norm_recorded(run: GoodRun) -> None:
    run.others[RECORD] = json.dumps({str(SPIKE): [NORM + 1]}).encode()


def a_broken_record(run: GoodRun) -> None:
    run.others[RECORD] = b"{"


def loads_a_part(run: GoodRun) -> None:
    run.only("load.end", rank=2)["parameters"] = 5


def another_state(run: GoodRun) -> None:
    run.only("initial", rank=3, mono=next(event["mono"] for event in run.events("initial", rank=3) if _late(event)))[
        "parameters"
    ] = digests_of(state_after(3, HELD - 1))


def _late(event: dict[str, object]) -> bool:
    return int(str(event["mono"])) > int(record(AT, "x")["mono"])


@pytest.mark.parametrize(
    ("spoil", "check", "text"),
    [
        (another_checkpoint, "mechanism", "rank 2 loaded what it had saved after step 3"),
        (one_rank_does_not_load, "mechanism", "rank 3 loaded no checkpoint"),
        (loads_twice, "mechanism", "rank 0 loaded 2 times"),
        (loads_a_part, "mechanism", "rank 2 loaded 5 of 6 parameters"),
        (a_handler_is_called, "mechanism", "stop was called on rank 0 in recovery 1, which is for TRE"),
        (a_new_process, "mechanism", "rank 2 was replaced"),
        (not_logged, "mechanism", "rank 2 logs 0 abnormal norms"),
        (resumed_elsewhere, "mechanism", "rank 2 logs that it resumed after TREError from steps [3], not [6]"),
        (no_record, "mechanism", "there is no abnormal_global_norm.json, step 8 should be in it"),
        (recorded_twice, "mechanism", "step 8 has 2 norms, not 1"),
        (another_step_recorded, "mechanism", "step 4 has 1 norms, not 0"),
        (another_norm_recorded, "mechanism", "step 8 is in it with 8.5, rank 0's gradients had 7.5"),
        (a_broken_record, "mechanism", "not JSON"),
        (another_state, "resume", "rank 3 held another state than that of step 6"),
    ],
)
def test_a_defect_of_the_rollback_is_a_failure(judged: Judge, spoil: Mutate, check: str, text: str) -> None:
    run = rolled_back_run()
    spoil(run)
    assert said(judged(run), check, "fail", text)


def in_iterations(run: GoodRun, other: str | None = None) -> None:
    """Rank 0 reads the two files of a save in MindFormers' new layout, each for what is in it and then for that.

    ``other`` is what the last of them is in place of the optimizer's state.
    """
    model, optimizer = "iteration_00000006/x-model-0000000-0000004", "iteration_00000006/x-opt-0000000-0000004"
    save = next(event for event in run.events("checkpoint.end", rank=0) if event["step"] == HELD)
    save["path"] = f"checkpoints/{model}"
    run.add("train-rank_0", {**save, "path": f"checkpoints/{optimizer}"})
    begin, end = run.only("load.begin", rank=0), run.only("load.end", rank=0)
    begin["path"] = end["path"] = f"checkpoints/{model}.safetensors"
    for count, name in enumerate((optimizer, model, other or optimizer), 1):
        for event in (begin, end):
            path = f"checkpoints/{name}.safetensors"
            run.add("train-rank_0", {**event, "path": path, "mono": event["mono"] + count})


def test_files_of_one_save_that_are_read_one_by_one_are_one_load(judged: Judge) -> None:
    run = rolled_back_run()
    in_iterations(run)
    assert not said(judged(run), "mechanism", "fail", "rank 0 loaded")
    run = rolled_back_run()
    in_iterations(run)
    for event in [*run.events("load.begin", rank=0), *run.events("load.end", rank=0)]:
        run.add("train-rank_0", {**event, "mono": event["mono"] + 10})
    assert said(judged(run), "mechanism", "fail", "rank 0 loaded 2 times")
    run = rolled_back_run()
    in_iterations(run)
    last = max(run.events("load.end", rank=0), key=lambda event: int(str(event["mono"])))
    assert run.drop("load.end", rank=0, mono=last["mono"]) == 1
    assert said(judged(run), "mechanism", "unknown", "rank 0 began to load and no end of it was recorded")
    run = rolled_back_run()
    in_iterations(run, other="iteration_00000003/x-opt-0000000-0000004")
    judgement = judged(run)
    assert said(judgement, "mechanism", "fail", "rank 0 loaded 2 times")
    assert said(judgement, "mechanism", "fail", "rank 0 loaded a file that it had not saved")


def test_what_a_file_holds_counts_before_what_its_rank_held(judged: Judge) -> None:
    run = rolled_back_run()
    state = state_after(2, HELD)
    run.saved[2] = Saved("job/checkpoints/rank_2/mnist-1_6.ckpt", state, {"step_num": HELD, "epoch_num": 1})
    assert not said(judged(run), "mechanism", "fail", "parameters")
    del state["learning_rate"]
    loads_a_part(run)
    assert not said(judged(run), "mechanism", "fail", "parameters")


IN_TIME_NS, LATE_NS = 1_000_000, 3_000_000_000


def in_background(run: GoodRun, late_ns: int = IN_TIME_NS, *, ok: bool = True, but: int | None = None) -> None:
    """Checkpoints are written in the background, ``late_ns`` after the call has returned; none of rank ``but``."""
    for event in [*run.events("checkpoint.begin"), *run.events("checkpoint.end")]:
        event["asynchronous"] = True
    for event in list(run.events("checkpoint.end")):
        if event["rank"] != but:
            times = {"mono": event["mono"] + late_ns, "wall": event["wall"] + late_ns}
            run.add(f"train-rank_{event['rank']}", {**event, **times, "event": "checkpoint.written", "ok": ok})
    run.replan(
        recovery_options=RecoveryOptions(asynchronous_saving=True),
        comparable=Comparable(HELD - 1, HELD, "asynchronous saving"),
    )


def test_a_checkpoint_that_was_written_in_the_background_is_taken_when_its_file_was_whole(judged: Judge) -> None:
    run = rolled_back_run()
    in_background(run)
    judgement = judged(run)
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]


@pytest.mark.parametrize(
    ("late_ns", "ok", "but"), [(LATE_NS, True, None), (IN_TIME_NS, False, None), (IN_TIME_NS, True, 3)]
)
def test_whether_an_unwritten_checkpoint_was_taken_is_unknown(
    judged: Judge, late_ns: int, ok: bool, but: int | None
) -> None:
    run = rolled_back_run()
    in_background(run, late_ns, ok=ok, but=but)
    judgement = judged(run)
    text = f"rank {3 if but is None else but} has not recorded that the file of step {HELD} was written"
    assert said(judgement, "mechanism", "unknown", text)
    assert judgement.verdict != "pass"


def test_a_rollback_that_comes_into_a_save_in_the_background_is_another_than_the_planned_one(judged: Judge) -> None:
    run = rolled_back_run()
    in_background(run, but=3)
    text = f"rank 3 has not recorded that its checkpoint of step {HELD} was written"
    assert said(judged(run), "injection", "unknown", text)


def test_the_log_of_a_replaced_process_counts(judged: Judge) -> None:
    run = rolled_back_run()
    run.others["logs/train/worker_2.before-1.log"] = run.others["logs/train/worker_2.log"]
    run.others["logs/train/worker_2.log"] = b"epoch: 1 step: 1, loss is 2.3\n"
    assert judged(run).verdict == "pass"


def test_without_a_ranks_log_nothing_is_known_of_it(judged: Judge) -> None:
    run = rolled_back_run()
    del run.others["logs/train/worker_2.log"]
    judgement = judged(run)
    assert said(judgement, "mechanism", "unknown", "rank 2 has no log")
    assert judgement.verdict == "unknown"


def test_a_rollback_that_nobody_planned_is_a_failure(judged: Judge) -> None:
    run = rolled_back_run()
    run.replan(mechanism=None, recoveries=())
    assert said(judged(run), "mechanism", "fail", "TRE acted: the log of rank 0: an abnormal norm stops the training")


def test_of_two_records_of_norms_neither_is_believed(judged: Judge) -> None:
    run = rolled_back_run()
    (name,) = (path for path in run.others if path.endswith("abnormal_global_norm.json"))
    run.others[name.replace("abnormal", "elsewhere/abnormal")] = run.others[name]
    judgement = judged(run)
    assert said(judgement, "mechanism", "unknown", "there are 2 of that name, and one job writes one")
    assert judgement.verdict == "unknown"


def test_an_infinite_norm_is_not_near_the_recorded_one(judged: Judge) -> None:
    run = rolled_back_run()
    next(run.events("digest", rank=0, step=SPIKE))["gradients"]["norm"] = "inf"
    assert said(judged(run), "mechanism", "fail", "step 8 is in it with 7.5, rank 0's gradients had inf")


def test_a_norm_that_rank_0_did_not_record_as_well_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    for event in run.events("digest", rank=0, step=SPIKE):
        event["gradients"] = None
    text = "step 8 is in it 1 times, rank 0 recorded 0 norms of its gradients there"
    assert said(judged(run), "mechanism", "unknown", text)


def below_the_threshold(run: GoodRun) -> None:
    for event in run.events("digest", rank=SPIKER, step=SPIKE):
        event["gradients"]["norm"] = (4.0).hex()


def no_number(run: GoodRun) -> None:
    for event in run.events("digest", rank=SPIKER, step=SPIKE):
        event["gradients"]["norm"] = "nan"


def never_scaled(run: GoodRun) -> None:
    run.drop("fault.scaled")


def not_repeated(run: GoodRun) -> None:
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, parameters={"norm": NORM, "repeat": 1}),))


def by_one(run: GoodRun) -> None:
    run.only("fault.scaled")["factor"] = 1


def in_another_step(run: GoodRun) -> None:
    run.only("fault.scaled")["step"] = SPIKE - 1


def not_recorded(run: GoodRun) -> None:
    for event in run.events("digest", rank=SPIKER, step=SPIKE):
        event["gradients"] = None


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (below_the_threshold, "the global norm of step 8 came to 4, not 7.5"),
        (no_number, "the global norm of step 8 came to nan, not 7.5"),
        (never_scaled, "rank 1's own history has no gradients that it scaled"),
        (not_repeated, "rank 1 scaled its gradients 1 times, not 2 times"),
        (by_one, "that changes nothing"),
        (in_another_step, "the planned fault was not injected"),
        (not_recorded, "the norm that rank 1's spike came to in step 8 is not recorded"),
    ],
)
def test_a_spike_without_proof_is_unknown(judged: Judge, spoil: Mutate, text: str) -> None:
    run = rolled_back_run()
    spoil(run)
    judgement = judged(run)
    assert said(judgement, "injection", "unknown", text)
    assert judgement.verdict == "unknown"


def test_a_factor_that_was_not_enough_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, parameters={"factor": 31.5}),))
    below_the_threshold(run)
    assert said(judged(run), "injection", "unknown", "came to 4 only, below the threshold 5")


def test_a_factor_that_came_to_no_number_is_unknown(judged: Judge) -> None:
    run = rolled_back_run()
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, parameters={"factor": 31.5}),))
    no_number(run)
    assert said(judged(run), "injection", "unknown", "came to nan only, below the threshold 5")


def off_its_course(run: GoodRun) -> None:
    """Let the step behind the spike be abnormal too, and let every rank go back once more for it."""
    for event in run.events("digest", step=SPIKE + 1):
        event["gradients"]["norm"] = (5.86).hex()
    loads_twice(run)


def test_a_second_spike_that_makes_later_steps_abnormal_blames_nobody(judged: Judge) -> None:
    """MindFormers takes those steps back as it promises, and the plan could not know of them."""
    run = rolled_back_run(1)
    off_its_course(run)
    judgement = judged(run)
    text = "the global norm of step 9 came to 5.86, the threshold 5 or more, without a fault there"
    assert said(judgement, "injection", "unknown", text)
    assert said(judgement, "mechanism", "unknown", "loaded 2 times (a failure if not for the doubts of: injection)")
    assert judgement.verdict == "unknown"


def test_an_abnormal_step_behind_a_spike_that_was_taken_back_is_no_excuse(judged: Judge) -> None:
    run = rolled_back_run()
    off_its_course(run)
    judgement = judged(run)
    assert said(judgement, "mechanism", "fail", "loaded 2 times")
    assert not said(judgement, "injection", "unknown", "off its course")


def test_without_a_norm_above_the_threshold_a_second_rollback_behind_a_repeated_spike_fails(judged: Judge) -> None:
    run = rolled_back_run(1)
    loads_twice(run)
    assert said(judged(run), "mechanism", "fail", "loaded 2 times")


def test_a_later_step_that_another_spike_makes_abnormal_is_no_doubt(judged: Judge) -> None:
    run = rolled_back_run(1)
    off_its_course(run)
    (fault,) = run.plan.faults
    other = replace(fault, id="later", trigger={**fault.trigger, "step": SPIKE + 1})
    run.replan(faults=(fault, other))
    assert not said(judged(run), "injection", "unknown", "off its course")


def test_a_spike_made_too_often_is_a_failure(judged: Judge) -> None:
    run = rolled_back_run()
    one = run.only("fault.scaled")
    run.add(f"train-rank_{SPIKER}", {**one, "mono": _second_time(run)})
    assert said(judged(run), "injection", "fail", "scaled too often on rank 1")


def test_a_step_that_an_earlier_run_has_recorded_counts(judged: Judge) -> None:
    run = rolled_back_run()
    run.replan(watch=Watch(5.0, (4,)))
    assert said(judged(run), "mechanism", "fail", "step 4 has 0 norms, not 1")
