"""No check passes when its evidence is missing or cannot be believed: it says unknown, and why."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.agent.digest import tensor_digest
from chaos.checks.judge import RunUnreadable, judge
from chaos.evidence.finding import Finding
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import (
    FAULT,
    RANKS,
    SAVED,
    GoodRun,
    Mutate,
    Record,
    good_run,
    hex_of,
    loss_after,
    pid_of,
    record,
    written,
)
from tests.unit.checks.judging import Judge, cases_of, not_passed, resumed_job_dies, said

VICTIM_FILE = "train-rank_2"


def landing(run: GoodRun) -> Record:
    return run.only("fault.landed")


def evidence(run: GoodRun) -> Record:
    (one,) = landing(run)["evidence"]
    assert isinstance(one, dict)
    return one


def wrong_rank(run: GoodRun) -> None:
    """Rank 3 is hit in place of rank 2."""
    pid = pid_of("train", 3)
    run.only("fault.injecting").update(rank=3, pid=pid, target_rank=3, start_time=103)
    landing(run).update(ranks=[3])
    evidence(run).update(rank=3, pid=pid)
    run.only("rank.exit", attempt="train", rank=3).update(signal=9, code=None)
    run.only("rank.exit", attempt="train", rank=2).update(signal=None, code=1)


def one_step_late(run: GoodRun) -> None:
    late = {"step": SAVED + 1, "phase": "step.end"}
    landing(run).update(late)
    evidence(run)["barrier"] = late
    run.only("barrier.reached").update(late)


def other_phase(run: GoodRun) -> None:
    landing(run).update(phase="forward")
    evidence(run)["barrier"]["phase"] = "forward"
    run.only("barrier.reached")["phase"] = "forward"


def launcher_hit(run: GoodRun) -> None:
    run.only("fault.injecting")["pid"] = 900
    evidence(run)["pid"] = 900


def never_made(run: GoodRun) -> None:
    run.drop("fault.injecting")
    run.drop("fault.landed")
    run.drop("fault.healed")
    run.add("harness", record(10.6, "fault.missed", fault=FAULT, kind="kill", reason="the process was gone"))
    run.only("rank.exit", attempt="train", rank=2).update(signal=None, code=1)


def goes_on_after_the_barrier(run: GoodRun) -> None:
    place: Record = {"attempt": "train", "rank": 2, "pid": pid_of("train", 2)}
    run.add(VICTIM_FILE, record(10.49, "step.begin", step=SAVED + 1, **place))


def never_at_that_step(run: GoodRun) -> None:
    run.drop("step.begin", attempt="train", rank=2, step=SAVED)
    run.drop("step.end", attempt="train", rank=2, step=SAVED)


def unplanned(run: GoodRun) -> None:
    run.add("harness", {**run.only("fault.injecting"), "fault": "kill-2"})


def before_the_other_fault(run: GoodRun) -> None:
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger={"all": [{"step": SAVED, "phase": "step.end"}, {"after": "other"}]}),))


def without(key: str, event: str, **match: object) -> Mutate:
    """Takes one field away from the events of that name."""

    def spoil(run: GoodRun) -> None:
        for entry in run.events(event, **match):
            del entry[key]

    return spoil


def another_process_and_no_identity(run: GoodRun) -> None:
    run.only("fault.injecting").update(start_time=1)
    without("start_time", "rank.found", rank=2)(run)


def before_the_time(run: GoodRun) -> None:
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger={"elapsed": 3.0}),))


def without_the_log_line(run: GoodRun) -> None:
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger={"log": {"contains": "loss scale", "rank": 0}}),))


INJECTION: list[tuple[Mutate, str]] = [
    (never_made, "the fault missed: the process was gone"),
    (lambda run: run.drop("fault.landed"), "no landing of this fault"),
    (lambda run: run.drop("fault.injecting"), "no record of the injection into rank 2"),
    (lambda run: landing(run).update(evidence=[]), "no evidence that rank 2 was hit"),
    (wrong_rank, "it landed on rank 3: the planned fault was not injected"),
    (one_step_late, "rank 2 was at step 6, phase step.end: the planned fault was not injected"),
    (other_phase, "rank 2 was at step 5, phase forward"),
    (launcher_hit, "process 900 was the launcher and not rank 2"),
    (lambda run: evidence(run).update(pid=4711), "the evidence is of process 4711"),
    (lambda run: evidence(run).update(signal=15), "shows SIGTERM, not SIGKILL"),
    (lambda run: evidence(run).update(barrier=None), "no barrier in the evidence for rank 2"),
    (lambda run: run.drop("barrier.reached"), "rank 2's own history has no barrier of this fault"),
    (lambda run: run.only("barrier.reached").update(step=4), "rank 2's own history says step 4"),
    (lambda run: run.only("fault.injecting").update(mono=run.only("barrier.reached")["mono"] - 1), "before it reached"),
    (lambda run: run.only("rank.exit", attempt="train", rank=2).update(signal=None, code=1), "exit code 1, not killed"),
    (lambda run: run.only("rank.exit", attempt="train", rank=2).update(signal=15), "SIGTERM, not killed by SIGKILL"),
    (lambda run: run.drop("rank.exit", attempt="train", rank=2), "no exit status of rank 2"),
    (lambda run: run.only("rank.exit", rank=2, attempt="train").update(mono=1), "had ended before the injection"),
    (lambda run: run.drop("rank.found", attempt="train", rank=2), "never identified as rank 2"),
    (lambda run: run.only("fault.injecting").update(start_time=1), "its start time differs"),
    (without("start_time", "fault.injecting"), "its start time is not recorded with the injection"),
    (without("start_time", "rank.found"), "its start time is not recorded with the identification"),
    (another_process_and_no_identity, "its start time is not recorded with the identification"),
    (lambda run: run.only("fault.injecting").update(target_rank=1), "aimed at rank 1"),
    (lambda run: run.drop("agent.start", attempt="train", rank=2), "no agent of rank 2"),
    (lambda run: landing(run).update(mono=run.only("fault.injecting")["mono"] - 1), "landing is recorded before"),
    (lambda run: landing(run).update(step=4), "the landing says step 4"),
    (goes_on_after_the_barrier, "rank 2 went on after the barrier: step.begin"),
    (never_at_that_step, "rank 2 had begun step 4 at the barrier of step 5"),
    (unplanned, "fault kill-2 was not planned"),
    (before_the_other_fault, "injected before fault other had landed"),
    (before_the_time, "injected 0.500 s after the first step"),
    (without_the_log_line, "no log of the job contains 'loss scale'"),
]


def file_of(run: GoodRun, prefix: str) -> list[Record]:
    (name,) = [name for name in run.files if name.startswith(prefix)]
    return run.files[name]


def seq_gap(run: GoodRun) -> None:
    records = file_of(run, "train-rank_1")
    for number, event in enumerate(records):
        event["seq"] = number
    del records[7]


def clock_back(run: GoodRun) -> None:
    file_of(run, "train-rank_1")[9]["mono"] -= 10**10


def torn(prefix: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        (name,) = [name for name in run.files if name.startswith(prefix)]
        content = written(run.files[name])
        run.raw[name] = content[:-9]
        del run.files[name]

    return spoil


def garbled(run: GoodRun) -> None:
    (name,) = [name for name in run.files if name.startswith("train-rank_1")]
    lines = written(run.files.pop(name)).splitlines(keepends=True)
    lines[6] = lines[6][:30] + b"\n"
    run.raw[name] = b"".join(lines)


def other_boot(run: GoodRun) -> None:
    run.only("writer.start", attempt="resume", rank=0)["boot"] = "b2"


def baseline_gap(run: GoodRun) -> None:
    assert run.baseline is not None
    records = run.baseline["train-rank_0-500.jsonl"]
    for number, event in enumerate(records):
        event["seq"] = number
    del records[-2]


def file_of_another_run(run: GoodRun) -> None:
    run.only("writer.start", attempt="train", rank=1)["run"] = "r0"


def a_rank_too_many(run: GoodRun) -> None:
    place: Record = {"attempt": "resume", "rank": RANKS, "pid": 7}
    run.add("resume-rank_3", record(13.9, "agent.start", python="3.11", argv=["train.py"], **place))


HISTORY: list[tuple[Mutate, str]] = [
    (file_of_another_run, "there are writers of 2 runs"),
    (a_rank_too_many, "there is a rank 4"),
    (
        lambda run: run.only("run.start").update(plan="0" * 32),
        "the plan is unchanged since the run | it was ch",
    ),
    (without("plan", "run.start"), "the run has not recorded which plan it followed"),
    (without("run", "writer.start"), "some writers do not name their run"),
    (without("boot", "writer.start"), "some writers do not name their host"),
    (without("host", "writer.start", rank=1), "some writers do not name their host"),
    (seq_gap, "seq 8 where 7 was expected"),
    (clock_back, "the monotonic clock runs back"),
    (torn("train-rank_1"), "the last line is torn"),
    (torn("resume-rank_2"), "the last line is torn"),
    (torn("harness"), "the last line is torn"),
    (garbled, "not an event"),
    (lambda run: run.drop("writer.start", attempt="train", rank=0), "the first event is agent.start"),
    (lambda run: run.drop_file("train-rank_0"), "no history of rank 0 in attempt train"),
    (lambda run: run.drop_file("resume-rank_1"), "no history of rank 1 in attempt resume"),
    (
        lambda run: run.drop("rank.found", attempt="resume", rank=1),
        "trained as rank 1 in attempt resume, and the harness",
    ),
    (lambda run: run.drop("run.start"), "no run.start of the harness"),
    (lambda run: run.drop("attempt.start", attempt="train"), "no start of attempt train"),
    (other_boot, "2 hosts or boots"),
    (baseline_gap, "seq "),
]


def ended(**what: object) -> Mutate:
    return lambda run: run.only("run.end").update(what)


def expired(name: str, at: float, attempt: str | None) -> Mutate:
    event = record(at, "deadline.expired", attempt, name=name, seconds=180, detail="rank 1 has begun no step")
    return lambda run: run.add("harness", event)


def stopped(at: float) -> Mutate:
    event = record(at, "harness.stopped", "train", seconds=42.5, since=1, until=2)
    return lambda run: run.add("harness", event)


def disk_low(run: GoodRun) -> None:
    run.add("harness", record(12.0, "disk.low", "train", free=4096))


def helper_lost(run: GoodRun) -> None:
    """The connection to a node is lost; a rank answers the SIGTERM of the teardown with a code of its own."""
    run.only("rank.exit", attempt="resume", rank=1).update(code=143)
    run.only("run.end")["error"] = "node 1: its remote helper was lost: signal SIGKILL"


def both(one: Mutate, other: Mutate) -> Mutate:
    def spoil(run: GoodRun) -> None:
        one(run)
        other(run)

    return spoil


def fails_by_itself(event: str, attempt: str | None = None) -> Mutate:
    def spoil(run: GoodRun) -> None:
        error = "ranks [0] did not reach step 12"
        run.only("run.end")["error"] = error
        run.add("harness", record(25.9, event, attempt, reason=error))

    return spoil


RUN: list[tuple[Mutate, str]] = [
    (lambda run: run.drop("run.end"), "the history has no run.end"),
    (ended(interrupted=True), "the run was interrupted"),
    (without("interrupted", "run.end"), "does not say whether it was interrupted or failed"),
    (without("error", "run.end"), "does not say whether it was interrupted or failed"),
    (ended(error="OSError: disk full"), "the harness failed: OSError: disk full"),
    (expired("start", 8.0, "train"), "deadline start (180 s) is kept"),
    (expired("fault", 8.0, "train"), "deadline fault (180 s) is kept"),
    (expired("end", 10.0, "train"), "deadline end (180 s) is kept"),
    (expired("run", 20.0, "resume"), "deadline run (180 s) is kept"),
    (stopped(at=12.0), "it was stopped for 42.5 s (SIGSTOP, or the machine was frozen)"),
    (disk_low, "4096 bytes were left"),
    (both(stopped(at=12.0), expired("end", 20.0, "train")), "deadline end (180 s) is kept"),
    (both(disk_low, expired("end", 20.0, "train")), "deadline end (180 s) is kept"),
    (both(stopped(at=24.0), resumed_job_dies(given_up=25.01)), "the job could not go on: rank 1"),
    (both(disk_low, resumed_job_dies(given_up=25.01)), "the job could not go on: rank 1"),
    (resumed_job_dies(given_up=24.9), "the job could not go on: rank 1"),
    (helper_lost, "the harness failed: node 1: its remote helper was lost"),
    (fails_by_itself("job.failed", attempt="train"), "the job could not go on: ranks [0] did not reach step 12"),
    (
        fails_by_itself("baseline.failed"),
        "the job does not train to its end without one: ranks [0]",
    ),
    (fails_by_itself("input.changed"), "an input was changed: ranks [0]"),
    (fails_by_itself("port.taken"), "the job could not start: ranks [0]"),
]


def no_digest_at_the_saved_step(run: GoodRun) -> None:
    assert run.baseline is not None
    for name, records in run.baseline.items():
        run.baseline[name] = [event for event in records if not (event["event"] == "digest" and event["step"] == SAVED)]


def nothing_to_compare_with(run: GoodRun) -> None:
    run.baseline = None
    run.replan(baseline="none")
    run.drop("digest", attempt="train", step=SAVED)


def no_names(run: GoodRun) -> None:
    nothing_to_compare_with(run)
    run.drop("initial", attempt="train")


def tolerance(run: GoodRun) -> None:
    run.replan(loss_tolerance=1e-3)
    close_by = run.saved[0].state["layer1.bias"] * 2
    run.saved[0].state["layer1.bias"] = close_by
    held = run.only("digest", attempt="train", rank=0, step=SAVED)["parameters"]
    held["layer1.bias"] = tensor_digest("float32", close_by.shape, close_by.tobytes())


def without_witness(run: GoodRun) -> None:
    run.drop("handler.enter", name="save_ckpt", rank=1)
    run.drop("checkpoint.end", rank=1)


def forgets_its_steps(run: GoodRun) -> None:
    run.drop("step.end", attempt="train", rank=0)


def unreadable_kind(run: GoodRun) -> None:
    path = run.saved.pop(0).path
    # A map parameter (field 3 of a value): the reader does not know it.
    run.others[path] = b"\x0a\x07\x0a\x01m\x1a\x02\x0a\x00"


CHECKPOINT: list[tuple[Mutate, str]] = [
    (no_digest_at_the_saved_step, "the baseline has no digests of rank 0 at step 5"),
    (nothing_to_compare_with, "recorded no digests at the saved step, and there is no baseline to compare with"),
    (no_names, "no record of which parameters rank 0 has"),
    (tolerance, "no samples are kept of layer1.bias"),
    (without_witness, "there is a file of rank 1, but the history of that rank has no save"),
    (forgets_its_steps, "no step of rank 0 has ended"),
    (unreadable_kind, "rank 0's file cannot be judged"),
    (lambda run: setattr(run, "baseline", None), "there is no baseline history"),
]


def files_disagree(run: GoodRun) -> None:
    run.saved[1].appended["step_num"] = 4


def load_of_a_lost_file(run: GoodRun) -> None:
    for event in run.events("load.begin", rank=2):
        event["path"] = "/gone/somewhere/else.ckpt"


def loaded_in_a_run_without_a_name(run: GoodRun) -> None:
    for event in run.events("load.begin"):
        event["path"] = f"/where/job/is/reports/r1/job/{event['path']}"
    without("run", "run.start")(run)


def state_before_the_load(run: GoodRun) -> None:
    run.only("load.end", rank=2)["mono"] = run.only("initial", attempt="resume", rank=2)["mono"] + 1


def no_batches(run: GoodRun) -> None:
    for event in run.events("digest", attempt="resume", rank=1):
        event["batch"] = None


def resume_skipped(run: GoodRun) -> None:
    run.drop("attempt.start", attempt="resume")
    run.add("harness", record(12.4, "resume.skipped", "resume", reason="no checkpoint was saved"))


RESUME: list[tuple[Mutate, str]] = [
    (resume_skipped, "no start of attempt resume: no checkpoint was saved"),
    (lambda run: run.drop("attempt.start", attempt="resume"), "no start of attempt resume"),
    (lambda run: run.drop_file("resume-rank_1"), "no history of rank 1 in attempt resume"),
    (files_disagree, "do not hold one and the same step"),
    (lambda run: run.drop("load.begin", rank=2), "no load of rank 2 is recorded"),
    (lambda run: run.drop("train.begin", attempt="resume", rank=2), "the step counter of rank 2 is not recorded"),
    (
        lambda run: run.only("train.begin", attempt="resume", rank=2).update(initial_step=None),
        "the step counter of rank 2 is not recorded",
    ),
    (load_of_a_lost_file, "rank 2 loaded …/gone/somewhere/else.ckpt, which was not kept"),
    (lambda run: run.drop("initial", attempt="resume", rank=2), "no digests of rank 2 before its first step"),
    (lambda run: run.only("initial", attempt="resume", rank=2).update(parameters={}), "no parameter of rank 2 can be"),
    (loaded_in_a_run_without_a_name, "it is not recorded in which run's directory rank 2's file was to be"),
    (state_before_the_load, "rank 2 loaded after its state was recorded"),
    (lambda run: run.drop("step.begin", attempt="resume", rank=1), "no step of rank 1 after the resume"),
    (lambda run: run.drop("step.begin", attempt="train", rank=1), "no step of rank 1 in attempt train"),
    (no_batches, "the batch of rank 1 at step 6 was not recorded"),
    (lambda run: run.drop("digest", attempt="resume", rank=1), "no batch of rank 1 after the resume can be compared"),
    (lambda run: setattr(run, "baseline", None), "there is no baseline history"),
]


def baseline_events(run: GoodRun, event: str) -> list[Record]:
    assert run.baseline is not None
    return [entry for records in run.baseline.values() for entry in records if entry["event"] == event]


def baseline_with_a_fault(run: GoodRun) -> None:
    assert run.baseline is not None
    run.baseline["harness.jsonl"].insert(3, record(5.0, "fault.landed", fault="f", kind="kill"))


def baseline_of_this_run(run: GoodRun) -> None:
    for event in baseline_events(run, "writer.start"):
        event["run"] = "r1"


def baseline_that_died(run: GoodRun) -> None:
    assert run.baseline is not None
    exits = record(26.0, "rank.exit", "train", 1, 501, signal=None, code=1)
    run.baseline["harness.jsonl"].insert(-1, exits)


def baseline_too_short(run: GoodRun) -> None:
    assert run.baseline is not None
    for name, records in run.baseline.items():
        run.baseline[name] = [event for event in records if event.get("step", 0) <= 9]


def baseline_without_an_exit(run: GoodRun) -> None:
    assert run.baseline is not None
    own = run.baseline["harness.jsonl"]
    own.remove(next(event for event in own if (event["event"], event.get("rank")) == ("rank.exit", 2)))


def baseline_of_more_ranks(run: GoodRun) -> None:
    assert run.baseline is not None
    records = copy.deepcopy(run.baseline["train-rank_3-503.jsonl"])
    run.baseline["train-rank_4-504.jsonl"] = [{**event, "rank": 4, "pid": 504} for event in records]


def baseline_of_another_seed(run: GoodRun) -> None:
    for event in baseline_events(run, "initial"):
        event["parameters"]["layer1.weight"] = hex_of("another seed")


def differs_before_the_fault(run: GoodRun) -> None:
    run.only("digest", attempt="train", rank=1, step=3)["loss"] = (loss_after(1, 3) * 1.5).hex()


def other_data_before_the_fault(run: GoodRun) -> None:
    run.only("digest", attempt="train", rank=1, step=3)["batch"] = hex_of("other")


def baseline_without_losses(run: GoodRun) -> None:
    for event in baseline_events(run, "digest"):
        event["loss"] = None


def neither_has_losses(run: GoodRun) -> None:
    baseline_without_losses(run)
    no_losses(run)


def baseline_without_a_loss(run: GoodRun) -> None:
    (one,) = (event for event in baseline_events(run, "digest") if (event["rank"], event["step"]) == (3, 9))
    one["loss"] = None


def baseline_without_parameters(run: GoodRun) -> None:
    for event in baseline_events(run, "digest"):
        event["parameters"] = {}


def no_gradients(run: GoodRun) -> None:
    for event in run.events("digest", attempt="resume"):
        event["gradients"] = None


def one_state(run: GoodRun) -> None:
    run.drop("initial", attempt="resume", rank=0)
    for event in run.events("digest", attempt="resume", rank=0):
        if event["step"] != 12:
            event["parameters"] = {}


def no_losses(run: GoodRun) -> None:
    for event in run.events("digest"):
        event["loss"] = None


def tolerance_of_weights(run: GoodRun) -> None:
    run.replan(loss_tolerance=1e-3)
    run.only("digest", attempt="resume", rank=0, step=12)["parameters"]["layer1.bias"] = hex_of("close by")


LOSS: list[tuple[Mutate, str]] = [
    (
        lambda run: run.only("digest", attempt="resume", rank=1, step=8).update(parameters=None),
        "no parameter digests of rank 1 at step 8",
    ),
    (lambda run: run.drop("digest", attempt="resume", rank=1, step=9), "no loss of rank 1 at step 9"),
    (lambda run: run.drop("digest", attempt="train", rank=1, step=3), "no loss of rank 1 at step 3"),
    (lambda run: run.only("digest", attempt="resume", rank=1, step=9).update(loss=None), "no loss of rank 1 at step 9"),
    (lambda run: run.drop("digest", attempt="resume", rank=1), "no gradients of rank 1"),
    (no_losses, "no loss was recorded"),
    (files_disagree, "the saved step is not known"),
    (lambda run: setattr(run, "baseline", None), "there is no baseline history"),
    (baseline_with_a_fault, "the baseline is not fault-free"),
    (baseline_of_this_run, "the baseline holds a history of this run"),
    (baseline_that_died, "rank 1 of the baseline did not end well: exit code 1"),
    (baseline_too_short, "ranks 0-3 of the baseline did not reach step 12"),
    (baseline_without_an_exit, "how rank 2 of the baseline ended is not recorded"),
    (baseline_of_more_ranks, "the baseline has 5 ranks, the plan 4"),
    (baseline_of_another_seed, "began with another layer1.weight than the baseline"),
    (differs_before_the_fault, "the loss of rank 1 at step 3, before any fault, differs from the baseline"),
    (other_data_before_the_fault, "the batch of rank 1 at step 3, before any fault"),
    (baseline_without_losses, "the baseline has no loss of rank 0 at step 1"),
    (neither_has_losses, "not one loss can be compared"),
    (baseline_without_a_loss, "the baseline has no loss of rank 3 at step 9"),
    (baseline_without_parameters, "the baseline has no parameter digests of rank 0"),
    (no_gradients, "no gradients of rank 0 were recorded in attempt resume"),
    (one_state, "fewer than two states of rank 0"),
    (tolerance_of_weights, "no samples are kept of layer1.bias"),
    (
        lambda run: run.only("digest", attempt="resume", rank=0, step=12).update(parameters={}),
        "no parameter digests of rank 0 at step 12",
    ),
]

CONSISTENCY: list[tuple[Mutate, str]] = [
    (
        lambda run: run.drop("digest", attempt="resume", rank=3),
        "no digests to compare ranks 1,3 by after step 12 in attempt resume",
    ),
    (lambda run: run.drop("digest", attempt="train"), "no digests to compare ranks 0,2 by in attempt train"),
]


def unheard(run: GoodRun) -> None:
    run.drop("handler.enter")
    run.drop("handler.exit")
    run.log.clear()


def nobody_listened(run: GoodRun) -> None:
    run.log.clear()
    run.drop("agent.start", attempt="train")


def rename_unseen(run: GoodRun) -> None:
    run.drop("handler.enter", name="rename")
    run.drop("handler.exit", name="rename")
    run.log = [(at, text) for at, text in run.log if "rename" not in text]


MECHANISM: list[tuple[Mutate, str]] = [
    (unheard, "there is a checkpoint, but neither a handler's call nor a log line"),
    (nobody_listened, "neither an agent nor the SDK has recorded anything"),
    (rename_unseen, "nothing shows the rename"),
    (lambda run: run.drop("handler.exit", name="save_ckpt", rank=0), "save_ckpt of rank 0 was called and never ret"),
    (
        lambda run: run.drop("handler.enter", name="save_ckpt", rank=0),
        "save_ckpt of rank 0 returned, and no call of it",
    ),
    (lambda run: run.drop("rank.exit", attempt="train", rank=3), "no exit of rank 3 was recorded"),
    (lambda run: run.drop("agent.start", attempt="resume"), "has recorded anything in attempt resume"),
    (lambda run: run.replan(recoveries=(Recovery("TRY", ("kill",), 5),)), "there is no rule by which to tell TRY"),
]


def wall_jump(run: GoodRun) -> None:
    for records in run.files.values():
        for event in records:
            if event["mono"] > run.only("fault.landed")["mono"]:
                event["wall"] -= 3600 * 10**9


def log_runs_back(run: GoodRun) -> None:
    run.log.insert(1, (15.0, "nextState: STATE_OP_NORMAL"))


def no_save_marker(run: GoodRun) -> None:
    run.drop("handler.enter", name="save_ckpt")
    run.drop("checkpoint.begin")


def no_rename_marker(run: GoodRun) -> None:
    run.drop("handler.exit", name="rename")
    run.log = [(at, text) for at, text in run.log if "rename" not in text]


def noticed(at: float) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.log = [(at if "ABNORMAL" in text else moment, text) for moment, text in run.log[:2]]

    return spoil


RECOVERY: list[tuple[Mutate, str]] = [
    (lambda run: run.log.pop(1), "detection ≤ 10 s | the controller's change to ABNORMAL is not in the SDK's logs"),
    (lambda run: run.log.clear(), "detection ≤ 10 s | the controller's change to ABNORMAL is not in the SDK's logs"),
    (wall_jump, "detection ≤ 10 s | the wall clock jumped by 3600.000 s during the run"),
    (log_runs_back, "detection ≤ 10 s | the times in logs/train/ttp/ttp_log.log.1000 run back by 3.900 s"),
    (noticed(9.0), "detection ≤ 10 s | the controller's change to ABNORMAL is logged before the fault"),
    (noticed(11.4), "stop ≤ 10 s | its end (history/train-rank_0-1000.jsonl:"),
    (no_save_marker, "save ≤ 10 s | its beginning is not known: the beginning of a save is not in the SDK's logs"),
    (no_rename_marker, "save ≤ 10 s | the end of the rename is not in the SDK's logs"),
    (lambda run: run.drop("rank.exit", attempt="train", rank=3), "exit ≤ 10 s | 3 of 4 exits are recorded"),
    (lambda run: run.drop("agent.start", attempt="resume", rank=3), "relaunch ≤ 10 s | the start in attempt resume"),
    (lambda run: run.drop("load.end", attempt="resume", rank=3), "load ≤ 10 s | the end of the load is recorded for 3"),
    (lambda run: run.drop("step.begin", attempt="resume", rank=3), "compile ≤ 10 s | the first step after the resume"),
    (lambda run: run.drop("step.end", attempt="resume", rank=3), "first step ≤ 10 s | the end of the first step"),
    (lambda run: run.drop("step.begin", attempt="train"), "caught up ≤ 10 s | no step of the faulted launch"),
    (lambda run: run.drop("fault.injecting"), "total ≤ 60 s | no fault was injected"),
]


def ledger_damaged(run: GoodRun) -> None:
    run.others["undo.jsonl"] = b"{not json}\n"


HYGIENE: list[tuple[Mutate, str]] = [
    (lambda run: run.drop("hygiene"), "no check was made"),
    (lambda run: run.only("hygiene").pop("orphans"), "not looked for: orphans"),
    (lambda run: run.only("hygiene").pop("ports"), "not looked for: ports"),
    (
        lambda run: run.only("hygiene").update(ports=[{"port": 8118, "listeners": [{"pid": 7, "cmdline": ["sshd"]}]}]),
        "port 8118 is in use by processes of no known run: 7 (sshd)",
    ),
    (
        lambda run: run.only("hygiene").update(ports=[{"port": 8118, "listeners": []}]),
        "in use by processes of no known run: processes that cannot be seen",
    ),
    (
        lambda run: run.only("hygiene").update(ports=[{"port": 8118, "listeners": [3]}]),
        "in use by processes of no known run: processes that cannot be seen",
    ),
    (lambda run: run.drop("rank.exit", attempt="train", rank=1), "rank 1 of attempt train ends with exit code 1"),
    (lambda run: run.drop("rank.exit", attempt="resume", rank=1), "rank 1 of attempt resume ends with exit code 0"),
    (lambda run: run.only("rank.exit", attempt="resume", rank=1).update(pid=7), "no exit status of process 2001"),
    (lambda run: run.drop("launcher.exit", attempt="resume"), "the launcher of attempt resume exits with 0"),
    (lambda run: run.drop("fault.healed"), "fault kill-1 has no record of being healed"),
    (ledger_damaged, "the undo ledger is damaged"),
    (lambda run: run.others.pop("undo.jsonl"), "the undo ledger holds no step"),
    (lambda run: run.only("hygiene").update(orphans=None), "not looked for: orphans"),
    (without("private_left", "hygiene"), "not looked for: the run's private directory"),
]

REMOVED = cases_of(
    {
        "injection": INJECTION,
        "history": HISTORY,
        "run": RUN,
        "checkpoint": CHECKPOINT,
        "resume": RESUME,
        "loss": LOSS,
        "consistency": CONSISTENCY,
        "mechanism": MECHANISM,
        "recovery": RECOVERY,
        "hygiene": HYGIENE,
    }
)


@pytest.mark.parametrize(("check", "spoil", "reason"), REMOVED)
def test_missing_evidence_is_unknown(run: GoodRun, judged: Judge, check: str, spoil: Mutate, reason: str) -> None:
    spoil(run)
    judgement = judged(run)
    assert said(judgement, check, "unknown", reason), not_passed(judgement)
    assert judgement.verdict != "pass"


@pytest.mark.parametrize("spoil", [spoil for spoil, _ in INJECTION], ids=lambda spoil: getattr(spoil, "__name__", ""))
def test_without_proof_of_the_fault_nobody_is_blamed(run: GoodRun, judged: Judge, spoil: Mutate) -> None:
    spoil(run)
    assert judged(run).verdict == "unknown"


def test_a_kill_that_missed_is_unknown_although_nothing_was_saved(run: GoodRun, judged: Judge) -> None:
    never_made(run)
    run.saved.clear()
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert said(judgement, "checkpoint", "unknown", "a failure if not for the doubts of: injection")


# What is in the record for a reader, and not as evidence of anything that a check promises.
_FOR_READERS = {"agent.cost", "attempt.end", "fault.armed", "launcher.found", "train.end"}
# The calls of the handler save_ckpt tell of the same save.
_TOLD_BY_OTHERS = {"checkpoint.begin", "checkpoint.end"}


def _event_names() -> list[str]:
    names = {str(event["event"]) for records in good_run().files.values() for event in records}
    return sorted(names)


@pytest.mark.parametrize("name", _event_names())
def test_no_pass_without_any_kind_of_event(run: GoodRun, judged: Judge, name: str) -> None:
    run.drop(name)
    expected = ("pass",) if name in _FOR_READERS | _TOLD_BY_OTHERS else ("unknown", "fail")
    assert judged(run).verdict in expected


@pytest.mark.parametrize("stride", [19, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_single_lost_line_is_noticed_and_nobody_is_blamed(tmp_path: Path, stride: int) -> None:
    wrong = []
    number = 0
    for name, records in good_run().files.items():
        for line in range(len(records)):
            number += 1
            last = line == len(records) - 1
            if number % stride and not last:
                continue
            run = good_run()
            lost = run.files[name].pop(line)
            for later in run.files[name][line:]:
                later["seq"] = run.files[name].index(later) + 1
            verdict = judge(run.write(tmp_path / str(number))).verdict
            # What was lost at the end of a file leaves no gap; then only the events that others wait for are missed.
            if verdict == "fail" or (verdict == "pass" and not last):
                wrong.append((name, line, lost["event"], verdict))
    assert wrong == []


def crashing(*_: object) -> list[Finding]:
    raise KeyError("step")


def test_a_check_that_crashes_is_unknown(run: GoodRun, tmp_path: Path) -> None:
    judgement = judge(run.write(tmp_path), {"fragile": crashing})
    assert judgement.verdict == "unknown"
    assert said(judgement, "fragile", "unknown", "the check crashed: KeyError: 'step'")


def test_a_check_that_says_nothing_is_unknown(run: GoodRun, tmp_path: Path) -> None:
    judgement = judge(run.write(tmp_path), {"silent": lambda *_: []})
    assert said(judgement, "silent", "unknown", "it made none")


def test_no_check_at_all_is_unknown(run: GoodRun, tmp_path: Path) -> None:
    assert judge(run.write(tmp_path), {}).verdict == "unknown"


def test_a_directory_without_a_plan_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunUnreadable, match="give the directory of a run"):
        judge(tmp_path)


def test_an_empty_run_is_unknown(run: GoodRun, tmp_path: Path) -> None:
    run.files.clear()
    run.saved.clear()
    run.log.clear()
    assert judge(run.write(tmp_path)).verdict == "unknown"
