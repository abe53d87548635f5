"""Each defect of an online repair is caught: by the check that is there for it, as a failure, for the right reason.

One thing is changed in a good run at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import (
    LAST,
    GoodRun,
    Mutate,
    Record,
    digests_of,
    float_hex_next,
    hex_of,
    loss_after,
    pid_of,
    record,
    state_after,
)
from tests.kit.runs.repaired_run import STRUCK, hcce_run, place_of, twice_run, uce_run
from tests.unit.checks.judging import Judge, said

HELD = STRUCK - 1
AT = 10 + 0.1 * (STRUCK - 1)
"""When the struck step was begun for the first time, in seconds."""


def file_of(run: GoodRun, rank: int) -> list[Record]:
    return run.files[f"train-rank_{rank}-{pid_of('train', rank)}.jsonl"]


def replayed(run: GoodRun, rank: int) -> list[Record]:
    """What a rank recorded from its last beginning of training on."""
    records = file_of(run, rank)
    start = max(number for number, event in enumerate(records) if event["event"] == "train.begin")
    return records[start:]


def restored(run: GoodRun, rank: int) -> Record:
    return next(event for event in replayed(run, rank) if event["event"] == "initial")


def hold(run: GoodRun, rank: int, *, of: int, step: int, prefix: str = "") -> None:
    """Let a rank go on with (part of) the state of another rank or step."""
    other = digests_of(state_after(of, step))
    restored(run, rank)["parameters"].update({name: other[name] for name in other if name.startswith(prefix)})


def call(rank: int, name: str, at: float, *, ok: bool = True) -> Mutate:
    """One more call of a handler, ``at`` seconds after the beginning of the struck step."""

    def spoil(run: GoodRun) -> None:
        run.add(f"train-rank_{rank}", record(AT + at, "handler.enter", name=name, **place_of(rank)))
        run.add(f"train-rank_{rank}", record(AT + at + 0.001, "handler.exit", name=name, ok=ok, **place_of(rank)))

    return spoil


def not_called(rank: int, name: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.drop("handler.enter", rank=rank, name=name)
        run.drop("handler.exit", rank=rank, name=name)

    return spoil


def failed(rank: int, name: str) -> Mutate:
    return lambda run: run.only("handler.exit", rank=rank, name=name).update(ok=False, error="RuntimeError: no stream")


def log_line(at: float, text: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.log.append((AT + at, text))
        run.log.sort()

    return spoil


def did_not_act(run: GoodRun) -> None:
    run.drop("handler.enter")
    run.drop("handler.exit")
    run.log = run.log[:1]


def never_repaired(run: GoodRun) -> None:
    not_called(1, "repair")(run)
    not_called(3, "repair")(run)


def repaired_from_the_other_group(run: GoodRun) -> None:
    not_called(3, "repair")(run)
    call(2, "repair", 0.5)(run)


def repaired_twice_then_not_at_all(run: GoodRun) -> None:
    """The second repair does not happen: the first one is made again in its place."""
    for event in run.events("handler.enter"):
        if event["mono"] > run.only("fault.injecting", rank=0)["mono"]:
            event["mono"] -= 2 * 10**8 + int(0.9e9)
    for records in run.files.values():
        records.sort(key=lambda event: int(event["mono"]))


def saved_instead(run: GoodRun) -> None:
    fields: Record = {"kind": "end-of-life", "step": HELD, "path": "/elsewhere/r1/job/checkpoints/x.ckpt"}
    run.add("train-rank_0", record(AT + 0.55, "checkpoint.begin", **fields, **place_of(0)))


def started_again(run: GoodRun) -> None:
    """The agent replaces the process of rank 1 after the error."""
    again = {**place_of(1), "pid": 4001}
    records = file_of(run, 1)
    start = len(records) - len(replayed(run, 1))
    run.files["train-rank_1-4001.jsonl"] = [
        record(AT + 0.4, "writer.start", writer="agent", run="r1", host="h1", boot="b1", **again),
        record(AT + 0.41, "agent.start", python="3.11", argv=["train.py"], **again),
        *({**event, "pid": 4001} for event in records[start:]),
    ]
    del records[start:]
    run.only("rank.exit", rank=1)["pid"] = 4001


def started_twice_under_one_number(run: GoodRun) -> None:
    run.add("train-rank_1", {**run.only("agent.start", rank=1), "mono": run.only("agent.start", rank=1)["mono"] + 10})


def whole_job_again(run: GoodRun) -> None:
    run.add("harness", record(13.5, "attempt.start", attempt="resume", argv=["msrun"], cwd="job"))


def repaired_too_early(run: GoodRun) -> None:
    run.only("handler.enter", rank=3, name="repair").update(
        mono=run.only("handler.exit", rank=0, name="clean")["mono"] - 1
    )
    for records in run.files.values():
        records.sort(key=lambda event: int(event["mono"]))


def cleaned_before_stopped(run: GoodRun) -> None:
    for event in ("handler.enter", "handler.exit"):
        stop, clean = run.only(event, rank=2, name="stop"), run.only(event, rank=2, name="clean")
        stop["mono"], clean["mono"] = clean["mono"], stop["mono"]
    file_of(run, 2).sort(key=lambda event: int(event["mono"]))


MECHANISM: list[tuple[Callable[[], GoodRun], Mutate, str]] = [
    (uce_run, did_not_act, "it did not act: no handler was called, and the SDK's log has no repair"),
    (uce_run, not_called(3, "stop"), "stop was not called on rank 3 in recovery 1"),
    (hcce_run, not_called(2, "clean"), "clean was not called on rank 2 in recovery 1"),
    (uce_run, call(0, "stop", 0.34), "stop was called 2 times on rank 0 in recovery 1"),
    (hcce_run, call(0, "clean", 0.4), "clean was called 2 times on rank 0 in recovery 1"),
    (uce_run, call(1, "repair", 0.55), "repair was called 2 times on rank 1 in recovery 1"),
    (uce_run, failed(2, "clean"), "handler clean failed on rank 2: RuntimeError: no stream"),
    (uce_run, failed(3, "repair"), "handler repair failed on rank 3"),
    (uce_run, never_repaired, "rank 1 lost its memory, and repair was not called on it in recovery 1"),
    (uce_run, not_called(3, "repair"), "no healthy rank of replica group [1, 3] gave its parameters"),
    (
        uce_run,
        repaired_from_the_other_group,
        "repair was called on healthy rank 2 in recovery 1: 0 of replica group",
    ),
    (hcce_run, call(1, "repair", 0.5), "repair was called on healthy rank 1 in recovery 1"),
    (
        uce_run,
        lambda run: run.only("handler.enter", rank=3, name="repair").update(step=4),
        "rank 3 was repaired at step 4",
    ),
    (uce_run, call(2, "clean", -0.3), "clean was called on rank 2 before the fault"),
    (uce_run, cleaned_before_stopped, "clean was called on rank 2 before stop"),
    (uce_run, repaired_too_early, "repair was called on rank 3 before rank"),
    (twice_run, repaired_twice_then_not_at_all, "stop was called 2 times on rank 0 in recovery 1"),
    (uce_run, log_line(0.75, "nextState: STATE_OP_REPAIR"), "2 repairs in its log"),
    (uce_run, call(0, "save_ckpt", 0.55), "TTP acted: handler save_ckpt on rank 0"),
    (uce_run, call(0, "rename", 0.55), "TTP acted: handler rename on rank 0"),
    (uce_run, call(2, "exit", 0.55), "rank 2 was told to exit"),
    (uce_run, call(2, "rebuild_group", 0.55), "ARF acted: handler rebuild_group on rank 2"),
    (uce_run, log_line(0.75, "Start do arf repair"), "ARF acted: the SDK's log: repair_begin"),
    (uce_run, saved_instead, "rank 0 saved an end-of-life checkpoint"),
    (uce_run, started_again, "rank 1 was replaced: processes 1001, 4001"),
    (uce_run, started_twice_under_one_number, "rank 1 was started 2 times"),
    (uce_run, whole_job_again, "the job was started again"),
]


def one_step_too_far_back(run: GoodRun, rank: int = 2) -> None:
    """A rank trains the step before the struck one a second time."""
    for event in replayed(run, rank):
        if event["event"] == "train.begin":
            event["initial_step"] = HELD - 1
    again = [
        event
        for event in file_of(run, rank)
        if event.get("step") == HELD and event["event"] in ("step.begin", "step.end")
    ]
    for number, event in enumerate(again):
        run.add(f"train-rank_{rank}", {**event, "mono": int(replayed(run, rank)[0]["mono"]) + 10**8 + number})


def replay_skipped(run: GoodRun) -> None:
    """A rank goes on with the step after the struck one."""
    records = replayed(run, 2)
    gone = [id(event) for event in records if event.get("step") == STRUCK]
    run.files["train-rank_2-1002.jsonl"] = [event for event in file_of(run, 2) if id(event) not in gone]


def later_step_skipped(run: GoodRun) -> None:
    run.files["train-rank_2-1002.jsonl"] = [event for event in file_of(run, 2) if event.get("step") != 9]


def step_trained_twice(run: GoodRun) -> None:
    for event in [entry for entry in replayed(run, 0) if entry.get("step") == 8]:
        run.add("train-rank_0", {**event, "mono": event["mono"] + 60_000_000})


def stopped_early(run: GoodRun) -> None:
    run.files["train-rank_3-1003.jsonl"] = [event for event in file_of(run, 3) if event.get("step") != LAST]


def began_again_unplanned(run: GoodRun) -> None:
    run.add("train-rank_0", record(AT + 1.35, "train.begin", initial_step=HELD, **place_of(0)))


def wrong_counter(run: GoodRun) -> None:
    replayed(run, 3)[0]["initial_step"] = HELD - 1


def state_ahead_of_training(run: GoodRun) -> None:
    """Rank 2 had not trained the common step when it was repaired, and never does."""
    records = file_of(run, 2)
    kept = [event for event in records if event.get("step") != HELD and event not in [records[-1]]]
    run.files["train-rank_2-1002.jsonl"] = kept


def batch_of(run: GoodRun, rank: int, step: int, taken_from: int) -> None:
    for event in replayed(run, rank):
        if event["event"] == "digest" and event["step"] == step:
            event["batch"] = hex_of("batch", rank, taken_from)


def read_a_checkpoint(run: GoodRun) -> None:
    run.add("train-rank_1", record(AT + 0.45, "load.begin", path="checkpoints/rank_1/a.ckpt", **place_of(1)))


RESUME: list[tuple[Callable[[], GoodRun], Mutate, str]] = [
    (uce_run, one_step_too_far_back, f"rank 2 went on at step {HELD}: step {HELD} was trained again"),
    (hcce_run, one_step_too_far_back, f"rank 2's step counter was {HELD - 1}, not {HELD}"),
    (uce_run, replay_skipped, f"rank 2 went on at step {STRUCK + 1}: step {STRUCK} was skipped"),
    (uce_run, later_step_skipped, "rank 2 skipped step 9 (step 10 after step 8)"),
    (uce_run, step_trained_twice, "rank 0 trained step 8 twice"),
    (uce_run, stopped_early, "rank 3 stopped after step 11"),
    (uce_run, began_again_unplanned, "rank 0 began again 2 times, with 1 recoveries planned"),
    (uce_run, wrong_counter, f"rank 3's step counter was {HELD - 1}, not {HELD}"),
    (
        uce_run,
        state_ahead_of_training,
        f"rank 2 had trained up to step {HELD - 1} when it was recovered at step {HELD}",
    ),
    (
        uce_run,
        lambda run: run.replan(recoveries=(Recovery("UCE", ("uce-6",), HELD - 1, copied=(1,)),)),
        f"rank 0 went on at step {STRUCK}",
    ),
    (uce_run, lambda run: batch_of(run, 2, STRUCK, STRUCK + 1), f"batch of step {STRUCK + 1}, so a batch was skipped"),
    (uce_run, lambda run: batch_of(run, 2, STRUCK, HELD), f"batch of step {HELD}, so a batch was trained twice"),
    (uce_run, read_a_checkpoint, "rank 1 read checkpoints/rank_1/a.ckpt"),
    (
        uce_run,
        lambda run: hold(run, 1, of=0, step=HELD, prefix="layer1.weight"),
        f"rank 1 held another state than that of step {HELD}: 1 differ: layer1.weight (layer1.weight is rank 0's of",
    ),
    (
        uce_run,
        lambda run: hold(run, 1, of=1, step=HELD - 1, prefix="moments."),
        "2 differ: moments.layer1.bias, moments.layer1.weight (moments.layer1.bias is rank 1's of step 4)",
    ),
    (hcce_run, lambda run: hold(run, 2, of=2, step=STRUCK), "global_step is rank 2's of step 6"),
    (uce_run, lambda run: restored(run, 3)["parameters"].pop("learning_rate"), "1 differ: learning_rate"),
]


def loss_off(run: GoodRun) -> None:
    one = next(event for event in replayed(run, 1) if event["event"] == "digest" and event["step"] == STRUCK)
    one["loss"] = float_hex_next(loss_after(1, STRUCK).hex())


def weight_off(run: GoodRun, rank: int = 1, step: int = STRUCK) -> None:
    one = next(event for event in replayed(run, rank) if event["event"] == "digest" and event["step"] == step)
    one["parameters"]["layer1.weight"] = hex_of("another")


OTHERS: list[tuple[str, Callable[[], GoodRun], Mutate, str]] = [
    ("loss", uce_run, loss_off, f"first at rank 1, step {STRUCK}: loss"),
    ("loss", uce_run, weight_off, f"first at rank 1, step {STRUCK}: 1 differ: layer1.weight"),
    ("consistency", uce_run, weight_off, f"ranks 1 and 3 disagree after step {STRUCK}"),
    (
        "consistency",
        uce_run,
        lambda run: hold(run, 1, of=0, step=HELD, prefix="layer1.weight"),
        "ranks 1 and 3 disagree after online repair 1 of attempt train: layer1.weight",
    ),
    ("consistency", twice_run, lambda run: hold(run, 0, of=1, step=8, prefix="layer1.w"), "after online repair 2"),
    (
        "checkpoint",
        uce_run,
        lambda run: run.others.update({"job/checkpoints/ttp_saved_checkpoints-step_5/rank_0/ttp_rank_0-1_5.ckpt": b""}),
        "rank 0 has one",
    ),
    (
        "hygiene",
        uce_run,
        lambda run: run.others.update({"job/checkpoints/ttp_saved_checkpoints-step_5_tmp/rank_0/.keep": b""}),
        "unfinished files",
    ),
    ("hygiene", uce_run, lambda run: run.only("rank.exit", rank=2).update(code=1), "exit code 0 | exit code 1"),
    ("hygiene", uce_run, lambda run: run.only("rank.exit", rank=1).update(signal=9, code=None), "ended by SIGKILL"),
    (
        "hygiene",
        uce_run,
        lambda run: run.only("launcher.exit").update(code=1),
        "the launcher of attempt train exits with 0",
    ),
    (
        "recovery",
        uce_run,
        lambda run: run.replan(budget=replace(run.plan.response.budget, phases={"repair": 0.2})),
        "repair ≤ 0.2 s | 0.250 s",
    ),
    (
        "injection",
        uce_run,
        lambda run: run.add(
            "train-rank_1", {**run.only("fault.raised"), "mono": run.only("fault.raised")["mono"] + 9**10}
        ),
        "raised more than once on rank 1",
    ),
]

SEEDED = [
    pytest.param(check, *defect, id=f"{check}-{number}")
    for check, defects in {"mechanism": MECHANISM, "resume": RESUME}.items()
    for number, defect in enumerate(defects, 1)
] + [pytest.param(*defect, id=f"{defect[0]}-other-{number}") for number, defect in enumerate(OTHERS, 1)]


@pytest.mark.parametrize(("check", "good", "spoil", "reason"), SEEDED)
def test_defect_is_caught_for_its_reason(
    judged: Judge, check: str, good: Callable[[], GoodRun], spoil: Mutate, reason: str
) -> None:
    run = good()
    spoil(run)
    judgement = judged(run)
    shown = [
        (finding.verdict, finding.check, finding.expected, finding.seen)
        for finding in judgement.findings
        if finding.verdict != "pass"
    ]
    assert said(judgement, check, "fail", reason), shown
    assert judgement.verdict == "fail"


def test_a_handler_rollback_is_part_of_a_repair(judged: Judge) -> None:
    run = uce_run()
    for rank in range(4):
        call(rank, "rollback", 0.55)(run)
    assert judged(run).verdict == "pass"


def test_a_failure_says_where_to_look(judged: Judge) -> None:
    run = uce_run()
    hold(run, 1, of=0, step=HELD, prefix="layer1.weight")
    (finding,) = said(judged(run), "resume", "fail", "held another state")
    at = 1 + file_of(run, 1).index(restored(run, 1))
    assert finding.where == (f"history/train-rank_1-1001.jsonl:{at}", "baseline/history/train-rank_1-501.jsonl:20")


def test_without_a_baseline_stale_state_is_found_by_the_ranks_own_record(judged: Judge) -> None:
    run = uce_run()
    run.baseline = None
    run.replan(baseline="none")
    hold(run, 1, of=1, step=HELD - 1, prefix="moments.")
    assert said(judged(run), "resume", "fail", "2 differ: moments.layer1.bias, moments.layer1.weight")
