"""Periodic checkpoints are held against what their ranks recorded, even where nobody has loaded them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.checks.checkpoint.periodic_values import EXPECTED
from chaos.checks.checkpoint.saved_numbers import ONE_STEP
from chaos.evidence.checkpoints.whole import lacking
from chaos.evidence.finding import Finding
from chaos.observe.checkpoints.layout import CheckpointFile
from chaos.observe.checkpoints.saved_state import SavedState
from tests.kit.runs.damaged_run import damaged_run
from tests.kit.runs.good_run import SAVED, VICTIM, GoodRun, Saved, digests_of, pid_of, record, state_after
from tests.kit.runs.restored_run import restored_run, slices_of
from tests.unit.checks.judging import Judge, said


@pytest.fixture
def run() -> GoodRun:
    return restored_run()


def findings(judged: Judge, run: GoodRun) -> list[Finding]:
    return [
        finding for finding in judged(run).findings if finding.check == "checkpoint" and finding.expected == EXPECTED
    ]


def test_files_that_hold_what_the_ranks_held_pass(run: GoodRun, judged: Judge) -> None:
    assert [(finding.verdict, finding.seen) for finding in findings(judged, run)] == [
        ("pass", "3 files compared by digest")
    ]


def zeroed(run: GoodRun) -> None:
    state = run.saved[1].state
    run.saved[1].state = {**state, "moments.layer1.weight": np.zeros_like(state["moments.layer1.weight"])}


def of_step_before(run: GoodRun) -> None:
    run.saved[1].state = {**state_after(1, SAVED - 1), "global_step": np.array([SAVED], np.int32)}


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (zeroed, "1 of 6 parameters in rank 1's file of step 5 differ: moments.layer1.weight"),
        (of_step_before, f"(layer1.bias is rank 1's of step {SAVED - 1})"),
    ],
)
def test_another_content_fails_at_any_tolerance(
    run: GoodRun, judged: Judge, spoil: Callable[[GoodRun], None], seen: str
) -> None:
    spoil(run)
    for tolerance in (0.0, 0.1):
        run.replan(loss_tolerance=tolerance)
        (finding,) = findings(judged, run)
        assert finding.verdict == "fail" and seen in finding.seen and "rank_1" in finding.where[0]


def saved_after(run: GoodRun, event: str, step: int) -> None:
    """Rank 1 has saved its periodic file right after that event, and what lies there is of step SAVED."""
    then = run.only(event, attempt="train", rank=1, step=step)["mono"]
    for number, name in enumerate(("checkpoint.begin", "checkpoint.end")):
        save = run.only(name, attempt="train", rank=1, kind="periodic")
        save.update(step=step, mono=then + 1000 * (1 + number))
    for records in run.files.values():
        records.sort(key=lambda entry: int(entry["mono"]))


def of_step(run: GoodRun, judged: Judge) -> list[Finding]:
    numbers = [
        finding for finding in judged(run).findings if finding.check == "checkpoint" and finding.expected == ONE_STEP
    ]
    return [finding for finding in numbers if "'s file holds step" in finding.seen]


@pytest.mark.parametrize("step", [SAVED - 2, SAVED - 1])
def test_a_file_of_another_step_than_the_one_at_which_it_was_saved_fails(
    run: GoodRun, judged: Judge, step: int
) -> None:
    """What lies there from another save is sound and holds what its rank held then, and is not what was saved."""
    saved_after(run, "digest", step)
    (finding,) = of_step(run, judged)
    assert finding.verdict == "fail" and "rank_1" in finding.where[0]
    message = f"rank 1's file holds step {SAVED}, and by its record the rank has saved step {step}: "
    assert finding.seen.startswith(message)


def test_a_file_that_was_saved_before_its_step_had_ended_may_hold_the_step_before(run: GoodRun, judged: Judge) -> None:
    saved_after(run, "step.begin", SAVED + 1)
    assert of_step(run, judged) == []


def test_what_a_process_saves_before_its_first_step_is_not_held_against_a_step(run: GoodRun, judged: Judge) -> None:
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.only(event, attempt="train", rank=1, kind="periodic")["step"] = 0
    assert of_step(run, judged) == []


def test_an_old_file_is_unknown_where_a_host_has_gone(run: GoodRun, judged: Judge) -> None:
    saved_after(run, "digest", SAVED - 1)
    run.add("harness", record(11.0, "host.vanished", node=1, host="second"))
    assert {finding.verdict for finding in of_step(run, judged)} == {"unknown"}


def test_a_step_that_the_optimizer_may_not_have_counted_is_unknown(run: GoodRun, judged: Judge) -> None:
    for saved in run.saved.values():
        saved.state["global_step"] = np.array([SAVED - 1], np.int32)
    for step in (SAVED - 1, SAVED):
        run.drop("digest", attempt="train", step=step)
    found = of_step(run, judged)
    assert {finding.verdict for finding in found} == {"unknown"}
    assert all("; the optimizer may have skipped updates: " in finding.seen for finding in found)


@pytest.mark.parametrize(("later", "verdict"), [(3_000_000, "pass"), (1, "fail")])
def test_of_a_step_that_was_trained_twice_the_last_training_before_the_save_counts(
    run: GoodRun, judged: Judge, later: int, verdict: str
) -> None:
    first = run.only("digest", attempt="train", rank=1, step=SAVED)
    other = digests_of(state_after(1, SAVED - 1))
    run.add("train-rank_1", {**first, "mono": first["mono"] + later, "parameters": other})
    assert [finding.verdict for finding in findings(judged, run)] == [verdict]


def test_without_a_digest_of_the_step_values_are_not_compared_and_names_are(run: GoodRun, judged: Judge) -> None:
    run.drop("digest", attempt="train", step=SAVED)
    assert findings(judged, run) == []
    without_moments(run)
    assert {finding.verdict for finding in findings(judged, run)} == {"fail"}


def without_moments(run: GoodRun) -> None:
    for saved in run.saved.values():
        saved.state = {name: value for name, value in saved.state.items() if not name.startswith("moments.")}


def only_the_step(run: GoodRun) -> None:
    run.saved[1].state = {"global_step": np.array([SAVED], np.int32)}


def without_a_step(run: GoodRun) -> None:
    del run.saved[1].state["global_step"]


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (without_moments, "file of step 5 lacks optimizer state: moments.layer1.bias, moments.layer1.weight"),
        (only_the_step, "rank 1's file of step 5 lacks parameters: layer1.bias, layer1.weight, learning_rate"),
        (without_a_step, "rank 1's file lacks optimizer state: global_step"),
    ],
)
def test_a_file_that_lacks_what_its_rank_held_fails(
    run: GoodRun, judged: Judge, spoil: Callable[[GoodRun], None], seen: str
) -> None:
    spoil(run)
    assert said(judged(run), "checkpoint", "fail", seen)


def test_a_rank_that_goes_on_with_more_than_its_file_holds_fails_without_a_baseline(
    run: GoodRun, judged: Judge
) -> None:
    without_moments(run)
    run.replan(baseline="none")
    run.baseline = None
    assert said(judged(run), "resume", "fail", "goes on with parameters that its file does not hold: moments.")


BASE = "base.weight"


def with_frozen_base(run: GoodRun, *, attempts: tuple[str, ...] = ("train", "resume")) -> None:
    """Every rank has a weight that it does not train, and that no file holds; ``attempts`` record it as frozen."""
    for event in [*run.events("initial"), *run.events("digest")]:
        event["parameters"] = {**event["parameters"], BASE: "1" * 32}
        if event["event"] == "initial" and event["attempt"] in attempts:
            event["frozen"] = [BASE]


def test_a_weight_that_is_not_trained_and_made_anew_by_every_start_may_be_in_no_file(
    run: GoodRun, judged: Judge
) -> None:
    with_frozen_base(run)
    judgement = judged(run)
    assert said(judgement, "checkpoint", "pass", "3 files compared by digest")
    assert said(judgement, "resume", "pass", "4 ranks compared by digest")
    assert not said(judgement, "checkpoint", "fail", BASE) and not said(judgement, "resume", "fail", BASE)


def test_a_weight_that_the_first_start_trains_must_be_in_the_file(run: GoodRun, judged: Judge) -> None:
    with_frozen_base(run, attempts=("resume",))
    assert said(judged(run), "checkpoint", "fail", f"lacks parameters: {BASE}")


def test_a_frozen_weight_that_changes_all_the_same_must_be_in_the_file(run: GoodRun, judged: Judge) -> None:
    with_frozen_base(run)
    for event in run.events("digest", attempt="train", rank=1):
        event["parameters"][BASE] = "2" * 32
    assert said(judged(run), "checkpoint", "fail", f"rank 1's file of step 5 lacks parameters: {BASE}")


def test_a_frozen_weight_that_another_start_makes_otherwise_must_be_in_the_file(run: GoodRun, judged: Judge) -> None:
    with_frozen_base(run)
    for event in run.events("initial", attempt="resume", rank=1):
        event["parameters"][BASE] = "2" * 32
    assert said(judged(run), "resume", "fail", f"goes on with parameters that its file does not hold: {BASE}")


def saved_at_the_start(run: GoodRun) -> None:
    """Rank 1 saves its weights before its first step, when its optimizer has no state yet."""
    (initial,) = run.events("initial", attempt="train", rank=1)
    initial["parameters"] = {
        name: digest for name, digest in initial["parameters"].items() if name.startswith("layer1")
    }
    run.saved[11] = Saved(
        "job/start-1.ckpt",
        {name: value for name, value in state_after(1, 0).items() if name.startswith("layer1")},
        {},
    )
    where = {name: initial[name] for name in ("attempt", "rank", "pid")}
    (begin,) = run.events("train.begin", attempt="train", rank=1)
    for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
        at = {"mono": begin["mono"] - 2 + number, "wall": begin["wall"] - 2 + number}
        run.add("train-rank_1", {"event": event, **where, **at, "kind": "periodic", "path": "start-1.ckpt", "step": 0})


def test_a_file_of_the_beginning_holds_the_state_with_which_its_process_began(run: GoodRun, judged: Judge) -> None:
    saved_at_the_start(run)
    judgement = judged(run)
    assert said(judgement, "checkpoint", "pass", "4 files compared by digest")
    run.saved[11].state["layer1.bias"] = np.ones(3, np.float32)
    assert said(judged(run), "checkpoint", "fail", "1 of 2 parameters in rank 1's file of step 0 differ: layer1.bias")


def test_a_number_of_updates_in_a_file_of_the_beginning_must_be_that_of_its_process(
    run: GoodRun, judged: Judge
) -> None:
    saved_at_the_start(run)
    for event in ("checkpoint.begin", "checkpoint.end"):  # without a step, as after a load
        for entry in run.events(event, attempt="train", rank=1, path="start-1.ckpt"):
            del entry["step"]
    run.saved[11].state["global_step"] = np.array([0], np.int32)
    assert not said(judged(run), "checkpoint", "unknown", "tells at which step it was saved")
    run.saved[11].state["global_step"] = np.array([4], np.int32)
    assert said(judged(run), "checkpoint", "fail", "rank 1's file holds step 4, and by its record the rank has saved")


def test_what_is_loaded_behind_the_save_is_another_state(run: GoodRun, judged: Judge) -> None:
    saved_at_the_start(run)
    (begin,) = run.events("train.begin", attempt="train", rank=1)
    where = {name: begin[name] for name in ("attempt", "rank", "pid", "wall")}
    run.add("train-rank_1", {"event": "load.begin", "path": "/data/x.ckpt", "mono": begin["mono"], **where})
    assert not said(judged(run), "checkpoint", "pass", "4 files compared by digest")


def test_a_file_with_other_names_cannot_be_compared(run: GoodRun, judged: Judge) -> None:
    (digest,) = [event for event in run.events("digest", attempt="train", rank=1) if event["step"] == SAVED]
    digest["parameters"] = {"tft_g_one_flag": "0"}
    run.saved[1].state = {"step_num": np.array([SAVED], np.int64), **run.saved[1].state}
    del run.saved[1].state["global_step"]
    assert said(judged(run), "checkpoint", "unknown", "no parameter in rank 1's file of step 5 can be compared")


def test_a_finished_file_that_cannot_be_read_fails(run: GoodRun, judged: Judge) -> None:
    run.saved[1].keep = 40
    assert said(judged(run), "checkpoint", "fail", "rank 1's file is damaged")


def test_what_a_host_has_not_written_before_it_went_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.saved[1].keep = 40
    run.add("harness", record(10.6, "host.vanished", node=0))
    assert said(judged(run), "checkpoint", "unknown", "a host has gone")
    assert not said(judged(run), "checkpoint", "fail", "is damaged")


def test_what_a_fault_has_damaged_or_an_end_has_broken_off_is_nobodys_fault(run: GoodRun, judged: Judge) -> None:
    run = damaged_run()
    run.saved[VICTIM].keep = 40
    assert findings(judged, run)[0].verdict == "pass"
    run = restored_run()
    run.saved[VICTIM] = Saved(f"job/{slices_of(VICTIM)}", state_after(VICTIM, SAVED), {}, keep=40)
    assert said(judged(run), "checkpoint", "fail", "rank 2's file is damaged")
    place: dict[str, Any] = {"attempt": "train", "rank": VICTIM, "pid": pid_of("train", VICTIM), "step": SAVED}
    path = f"/elsewhere/r1/job/{slices_of(VICTIM)}"
    run.add(f"train-rank_{VICTIM}", record(10.455, "checkpoint.begin", kind="periodic", path=path, **place))
    assert not said(judged(run), "checkpoint", "fail", "rank 2's file is damaged")


def test_a_file_that_says_that_it_leaves_out_what_others_save_is_not_asked_for_it() -> None:
    state = SavedState({"layer1.weight": "0"}, (), {}, partial=True)
    file = CheckpointFile(Path("rank_0/net-1_4.safetensors"), 0, 1, 4, None, False, "periodic", None)
    assert lacking(file, state, ["layer1.weight", "layer1.bias"]) == []
    assert lacking(file, replace(state, partial=False), ["layer1.bias", "epoch_num", "tft_g_one_flag"]) == [
        "layer1.bias"
    ]
    weights = replace(file, path=Path("checkpoint_network/rank_0/net-1_4.safetensors"))
    assert lacking(weights, replace(state, partial=False), ["moments.layer1.bias"]) == []


def test_the_loss_scale_of_mindformers_new_layout_is_in_no_file_of_a_rank() -> None:
    state = SavedState({"layer1.weight": "0"}, (), {})
    path = Path("checkpoint/iteration_00000003/qwen3-model-0000000-0000001.safetensors")
    file = CheckpointFile(path, 0, 1, 3, None, False, "either", 0)
    assert lacking(file, state, ["scale_sense", "layer1.bias"]) == ["layer1.bias"]
    assert lacking(replace(file, path=Path("rank_0/x-1_3.ckpt")), state, ["scale_sense"]) == ["scale_sense"]
