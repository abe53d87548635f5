"""A good rescheduling (ARF) passes every check, each defect of one is caught, and without evidence it is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.registry import BUILT_IN
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import GoodRun, Mutate, digests_of, float_hex_next, pid_of, record, state_after
from tests.kit.runs.replaced_run import AT, HELD, NEW_PID, PHASES_S, SOURCE, VICTIM, place_of, replaced_run
from tests.unit.checks.judging import Judge, said

NEW = f"train-rank_{VICTIM}-{NEW_PID}"


def test_a_good_rescheduling_passes_every_check_and_is_measured(judged: Judge) -> None:
    judgement = judged(replaced_run())
    assert [
        (finding.check, finding.expected, finding.seen) for finding in judgement.findings if finding.verdict != "pass"
    ] == []
    assert judgement.verdict == "pass"
    assert {finding.check for finding in judgement.findings} == set(BUILT_IN)
    seconds = {phase.name: phase.seconds for phase in judgement.recovery.phases}
    assert seconds == pytest.approx(PHASES_S)


def call(rank: int, name: str, at: float, *, ok: bool = True, new: bool = False, **fields: Any) -> Mutate:
    """One more call of a handler, ``at`` seconds after the beginning of the struck step."""

    def spoil(run: GoodRun) -> None:
        place = place_of(rank, new=new)
        file = f"train-rank_{rank}-{place['pid']}"
        run.add(file, record(AT + at, "handler.enter", name=name, **fields, **place))
        run.add(file, record(AT + at + 0.02, "handler.exit", name=name, ok=ok, **place))

    return spoil


def without(rank: int, name: str, *, new: bool = False) -> Mutate:
    """A handler that was never called."""

    def spoil(run: GoodRun) -> None:
        for event in ("handler.enter", "handler.exit"):
            run.drop(event, rank=rank, name=name, pid=place_of(rank, new=new)["pid"])

    return spoil


def failed(rank: int, name: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.only("handler.exit", rank=rank, name=name)["ok"] = False

    return spoil


def loaded(run: GoodRun) -> None:
    run.add(NEW, record(AT + 4.0, "load.begin", path="checkpoints/rank_2/mnist-1_4.ckpt", **place_of(VICTIM, new=True)))


def a_survivor_started_again(run: GoodRun) -> None:
    run.files["train-rank_1-3001.jsonl"] = [
        record(AT + 2, "writer.start", "train", 1, 3001, writer="agent", run="r1", host="h1", boot="b1"),
        record(AT + 2.1, "agent.start", "train", 1, 3001, python="3.11", argv=[]),
    ]


def a_third_process(run: GoodRun) -> None:
    run.files[f"train-rank_{VICTIM}-4000.jsonl"] = [
        record(AT + 2, "writer.start", "train", VICTIM, 4000, writer="agent", run="r1", host="h1", boot="b1"),
        record(AT + 2.1, "agent.start", "train", VICTIM, 4000, python="3.11", argv=[]),
    ]


def another_state(run: GoodRun) -> None:
    initial = run.only("initial", pid=NEW_PID)
    initial["parameters"] = digests_of(state_after(1, HELD))


def another_loss(run: GoodRun) -> None:
    digest = run.only("digest", pid=NEW_PID, step=HELD + 2)
    digest["loss"] = float_hex_next(digest["loss"])


def repaired_early(run: GoodRun) -> None:
    """State is copied before rank 3 has rebuilt its groups."""
    exit_event = run.only("handler.exit", rank=3, name="rebuild_group")
    for field in ("mono", "wall"):
        exit_event[field] += 2_200_000_000


def saved(run: GoodRun) -> None:
    call(0, "save_ckpt", 5.3, step=HELD)(run)


def twice_by_the_log(run: GoodRun) -> None:
    run.log.append((AT + 4, "Start do arf repair"))


DEFECTS: dict[str, tuple[Mutate, str, str]] = {
    "a survivor is not stopped": (without(1, "stop"), "mechanism", "stop was not called on rank 1"),
    "a survivor keeps its groups": (without(3, "rebuild_group"), "mechanism", "rebuild_group was not called on rank 3"),
    "groups are rebuilt twice": (call(1, "rebuild_group", 3.5), "mechanism", "rebuild_group was called 2 times"),
    "nobody gives its state": (without(SOURCE, "repair"), "mechanism", "no surviving rank of replica group [0, 2]"),
    "the new process gets none": (without(VICTIM, "repair", new=True), "mechanism", "not called on the new rank 2"),
    "a rank of another group gives": (call(1, "repair", 5.0), "mechanism", "repair was called on surviving rank 1"),
    "repaired at another step": (call(1, "repair", 5.0, step=3), "mechanism", "rank 1 was repaired at step 3"),
    "a handler fails": (failed(3, "rebuild_group"), "mechanism", "handler rebuild_group failed on rank 3"),
    "copied before all are ready": (repaired_early, "mechanism", "before rank 3 had rebuilt its groups"),
    "a checkpoint is read": (loaded, "mechanism", "rank 2 read checkpoints/rank_2"),
    "a checkpoint is saved": (saved, "mechanism", "TTP acted"),
    "a survivor is started again": (a_survivor_started_again, "mechanism", "rank 1 was replaced"),
    "started twice for one strike": (a_third_process, "mechanism", "rank 2 was started 2 times"),
    "the SDK replaced twice": (twice_by_the_log, "mechanism", "2 times by its log"),
    "the state is not the replica's": (another_state, "resume", ""),
    "a later loss differs": (another_loss, "loss", ""),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_a_failure_of_its_check(judged: Judge, name: str) -> None:
    spoil, check, text = DEFECTS[name]
    run = replaced_run()
    spoil(run)
    assert said(judged(run), check, "fail", text)


def no_handler(run: GoodRun) -> None:
    run.drop("handler.enter")
    run.drop("handler.exit")


def nothing(run: GoodRun) -> None:
    no_handler(run)
    run.log.clear()


def no_start(run: GoodRun) -> None:
    run.drop("agent.start", pid=NEW_PID)


def never_returned(run: GoodRun) -> None:
    run.drop("handler.exit", name="rebuild_group", rank=1)


def without_line(text: str) -> Mutate:
    def spoil(run: GoodRun) -> None:
        run.log = [(at, line) for at, line in run.log if text not in line]

    return spoil


UNKNOWN: dict[str, tuple[Mutate, str]] = {
    "no handler was recorded": (no_handler, "no call of a handler was recorded"),
    "neither handler nor log": (nothing, "neither a handler's call nor a log"),
    "no start of the new process": (no_start, "no start"),
    "a handler never returned": (never_returned, "was called and never returned"),
    "the log does not tell of it": (without_line("arf repair"), "0 times by its log"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_without_evidence_it_is_unknown(judged: Judge, name: str) -> None:
    spoil, text = UNKNOWN[name]
    run = replaced_run()
    spoil(run)
    judgement = judged(run)
    assert said(judgement, "mechanism", "unknown", text)
    assert judgement.verdict != "pass"


@pytest.mark.parametrize(
    ("phase", "spoil"),
    [
        ("detection", without_line("OP_ABNORMAL")),
        ("restart", lambda run: [without(rank, "rebuild_group")(run) for rank in (0, 1, 3)]),
        ("repair", lambda run: run.log.pop()),
    ],
)
def test_a_phase_whose_end_is_not_recorded_is_unknown(judged: Judge, phase: str, spoil: Mutate) -> None:
    run = replaced_run()
    spoil(run)
    seconds = {one.name: one.seconds for one in judged(run).recovery.phases}
    assert seconds[phase] is None


def test_the_old_process_must_have_been_killed(judged: Judge) -> None:
    run = replaced_run()
    exit_event = run.only("rank.exit", pid=pid_of("train", VICTIM))
    exit_event.update(signal=None, code=0)
    judgement = judged(run)
    assert judgement.verdict != "pass"


def after_a_failed_repair() -> GoodRun:
    """UCE was tried before: it was then that the survivors stopped and cleaned. How it failed is judged elsewhere."""
    run = replaced_run()
    tried = Recovery("UCE", ("kill",), HELD, succeeds=False, copied=(VICTIM,))
    run.replan(recoveries=(tried, *run.plan.response.recoveries))
    return run


def test_the_handlers_of_a_failed_repair_are_not_taken_for_those_of_the_replacement(judged: Judge) -> None:
    judgement = judged(after_a_failed_repair())
    assert said(judgement, "injection", "pass", "")
    assert said(judgement, "mechanism", "fail", "ARF replaces") == []
    assert said(judgement, "mechanism", "pass", "ARF replaces")


@pytest.mark.parametrize("name", ["stop", "clean"])
def test_after_a_failed_repair_the_replacement_does_not_stop_and_clean_again(judged: Judge, name: str) -> None:
    run = after_a_failed_repair()
    call(1, name, 0.4)(run)
    assert said(judged(run), "mechanism", "fail", f"{name} was called 2 times on rank 1")


@pytest.mark.parametrize("pid", [pid_of("train", VICTIM), NEW_PID])
def test_the_history_of_each_process_of_a_rank_must_be_there(judged: Judge, pid: int) -> None:
    run = replaced_run()
    run.drop_file(f"train-rank_{VICTIM}-{pid}")
    judgement = judged(run)
    assert said(
        judgement, "history", "unknown", f"no history of rank {VICTIM} in attempt train, though its process {pid}"
    )
    assert judgement.verdict == "unknown"


def unknown_end(run: GoodRun, pid: int) -> None:
    run.only("rank.exit", pid=pid).update({"signal": None, "code": None})


def test_how_the_new_process_ended_is_unknown_where_nobody_can_say(judged: Judge) -> None:
    run = replaced_run()
    unknown_end(run, NEW_PID)
    judgement = judged(run)
    assert said(judgement, "hygiene", "unknown", "its exit status is unknown")
    assert not said(judgement, "hygiene", "fail", "")


def test_a_replaced_process_of_whose_end_nothing_is_known_did_not_end_as_planned(judged: Judge) -> None:
    """One that no fault has ended, in a restart of all ranks: it was killed, or it ended by itself."""
    run = replaced_run()
    act = run.only("fault.injecting")
    old, act["pid"] = act["pid"], 1
    unknown_end(run, old)
    assert said(judged(run), "hygiene", "unknown", "was replaced, and its exit status is unknown")
