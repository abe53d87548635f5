"""Every number in a periodic checkpoint is that of the step at which it was saved, and so are its values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chaos.checks.checkpoint.periodic_values import EXPECTED
from chaos.checks.checkpoint.saved_numbers import ONE_STEP
from chaos.evidence.finding import Finding
from tests.kit.runs.good_run import SAVED, GoodRun, Saved, digests_of, good_run, pid_of, record, state_after
from tests.kit.runs.moved_run import moved_run
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.checkpoint.test_other_layouts import new_layout
from tests.unit.checks.judging import Judge, not_passed, said

OLDER = SAVED - 3


def numbered() -> GoodRun:
    """Every file says its step, its epoch and how many batches that has."""
    run = restored_run()
    run.replan(steps_per_epoch=4)
    for saved in run.saved.values():
        saved.path = saved.path.replace(f"-1_{SAVED}.", "-2_1.")
        saved.appended = {"epoch_num": 2, "step_num": SAVED, "batch_num": 4}
    for event in [*run.events("checkpoint.begin"), *run.events("checkpoint.end"), *run.events("load.begin")]:
        event["path"] = event["path"].replace(f"-1_{SAVED}.", "-2_1.")
    for event in run.events("load.end"):
        event["path"] = event["path"].replace(f"-1_{SAVED}.", "-2_1.")
    return run


@pytest.fixture
def run() -> GoodRun:
    return numbered()


def numbers(judged: Judge, run: GoodRun) -> list[Finding]:
    return [
        finding for finding in judged(run).findings if finding.check == "checkpoint" and finding.expected == ONE_STEP
    ]


def test_files_whose_numbers_are_of_their_step_pass(run: GoodRun, judged: Judge) -> None:
    assert [(finding.verdict, finding.seen) for finding in numbers(judged, run)] == [
        ("pass", "the numbers in 3 files match")
    ]
    assert not_passed(judged(run)) == []


def content_of_an_older_step(run: GoodRun) -> None:
    """Saved at step 5 with step_num 5: all values and the optimizer's count are of step 2."""
    run.saved[1].state = state_after(1, OLDER)


def right_but(name: str, number: int | None) -> Callable[[GoodRun], None]:
    def spoil(run: GoodRun) -> None:
        if number is None:
            del run.saved[1].appended[name]
        else:
            run.saved[1].appended[name] = number

    return spoil


def counted_on(run: GoodRun) -> None:
    run.saved[1].state["global_step"] = np.array([SAVED + 1], np.int32)


SPOILT: dict[str, tuple[Callable[[GoodRun], None], str]] = {
    "content of an older step": (
        content_of_an_older_step,
        f"holds step_num {SAVED}, global_step {OLDER}, and by its record the rank has saved step {SAVED}",
    ),
    "step_num of an older step": (
        right_but("step_num", OLDER),
        f"holds step_num {OLDER}, global_step {SAVED}, and by its record the rank has saved step {SAVED}",
    ),
    "global_step of a later step": (counted_on, f"holds step_num {SAVED}, global_step {SAVED + 1}, and by its record"),
    "step_num lost": (right_but("step_num", None), "holds no step_num, as others of its kind do: sliced-2_1.ckpt"),
    "epoch lost": (right_but("epoch_num", None), "holds no epoch_num, as others of its kind do"),
    "another epoch": (right_but("epoch_num", 1), "file of step 5 holds epoch 1, and that step is in epoch 2"),
    "other batches": (right_but("batch_num", 9), "holds batch_num 9, and an epoch has 4 steps"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_number_of_another_step_fails_and_is_named(run: GoodRun, judged: Judge, how: str) -> None:
    spoil, seen = SPOILT[how]
    spoil(run)
    found = [finding for finding in numbers(judged, run) if finding.verdict == "fail" and seen in finding.seen]
    assert found and "rank_1" in found[0].where[0], numbers(judged, run)
    assert "rank 1's file" in found[0].seen


def test_values_of_an_older_step_fail_by_themselves_and_their_origin_is_told(run: GoodRun, judged: Judge) -> None:
    content_of_an_older_step(run)
    (found,) = [
        finding for finding in judged(run).findings if finding.check == "checkpoint" and finding.expected == EXPECTED
    ]
    assert found.verdict == "fail"
    assert found.seen.startswith(f"5 of 6 parameters in rank 1's file of step {SAVED} differ: global_step, ")
    assert f"(global_step is rank 1's of step {OLDER})" in found.seen


def test_a_number_that_no_file_holds_is_none_by_design(run: GoodRun, judged: Judge) -> None:
    for saved in run.saved.values():
        saved.appended = {}
    assert not_passed(judged(run)) == []


def test_updates_that_the_optimizer_has_skipped_are_told_by_the_ranks_own_digest(run: GoodRun, judged: Judge) -> None:
    """A step whose update is skipped is a step: the file says step 5, the optimizer has counted 4."""
    for rank, saved in run.saved.items():
        saved.state = {**saved.state, "global_step": np.array([SAVED - 1], np.int32)}
        for attempt, event in (("train", "digest"), ("resume", "initial")):
            for entry in run.events(event, attempt=attempt):
                if entry.get("step", SAVED) == SAVED and entry["rank"] in (rank, (rank + 2) % 4):
                    entry["parameters"]["global_step"] = digests_of(saved.state)["global_step"]
    assert {finding.verdict for finding in numbers(judged, run)} == {"pass"}
    for step in range(1, SAVED + 1):
        run.drop("digest", attempt="train", step=step)
    seen = f"holds step_num {SAVED}, global_step {SAVED - 1}, and by its record the rank has saved step {SAVED}"
    doubts = said(judged(run), "checkpoint", "unknown", f"{seen}; the optimizer may have skipped updates")
    assert len(doubts) == 3


def without_records(run: GoodRun) -> None:
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.drop(event, attempt="train", rank=1)


def test_without_a_record_of_the_save_two_steps_in_a_file_fail(run: GoodRun, judged: Judge) -> None:
    content_of_an_older_step(run)
    without_records(run)
    seen = f"rank 1's file holds step_num {SAVED}, global_step {OLDER}, which are two steps"
    assert said(judged(run), "checkpoint", "fail", seen)


def test_without_a_record_a_file_cannot_hold_less_than_its_name_says(run: GoodRun, judged: Judge) -> None:
    """Names that count anew say less than the step, and none says more."""
    content_of_an_older_step(run)
    run.saved[1].appended["step_num"] = OLDER
    without_records(run)
    assert said(judged(run), "checkpoint", "fail", f"rank 1's file holds step {OLDER}, and its name says step {SAVED}")
    del run.saved[1].appended["step_num"]
    assert said(judged(run), "checkpoint", "unknown", f"holds step {OLDER}, and its name says step {SAVED}")


def saves_of_a_resumed_training(run: GoodRun, *, epochs: dict[int, int], name: str = "1_3") -> None:
    """Every rank saves after step 8 of the resumed job, whose names count from its own beginning."""
    for rank, epoch in epochs.items():
        path = f"checkpoints/rank_{rank}/sliced_1-{name}.ckpt"
        appended = {"epoch_num": epoch, "step_num": SAVED + 3}
        run.saved[10 + rank] = Saved(f"job/{path}", state_after(rank, SAVED + 3), appended)
        place: dict[str, Any] = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank), "step": SAVED + 3}
        trained = run.only("digest", attempt="resume", rank=rank, step=SAVED + 3)["mono"]
        for number, event in enumerate(("checkpoint.begin", "checkpoint.end"), 1):
            one = {**record(0, event, kind="periodic", path=path, **place), "mono": trained + 1000 * number}
            run.add(f"resume-rank_{rank}", one)


def test_a_training_that_goes_on_may_count_its_epochs_anew_as_its_names_do(run: GoodRun, judged: Judge) -> None:
    saves_of_a_resumed_training(run, epochs={0: 1, 1: 1})
    assert not_passed(judged(run)) == []
    saves_of_a_resumed_training(run, epochs={0: 2, 1: 2})
    assert not_passed(judged(run)) == []
    saves_of_a_resumed_training(run, epochs={0: 3, 1: 3})
    assert said(judged(run), "checkpoint", "fail", "file of step 8 holds epoch 3, and that step is in epoch 1 or 2")


def test_an_epoch_that_only_one_rank_has_fails_where_nobody_knows_how_long_epochs_are(
    run: GoodRun, judged: Judge
) -> None:
    run.replan(steps_per_epoch=run.plan.training.last_step)
    saves_of_a_resumed_training(run, epochs={0: 2, 1: 2})
    assert {finding.verdict for finding in numbers(judged, run)} == {"unknown"}
    saves_of_a_resumed_training(run, epochs={0: 1, 1: 2})

    seen = "epoch_num is not the same in the files of step 8: rank 0: 1, rank 1: 2"
    assert said(judged(run), "checkpoint", "fail", seen)


def test_a_step_of_the_scripts_own_that_only_one_rank_has_fails(run: GoodRun, judged: Judge) -> None:
    for saved in run.saved.values():
        saved.appended["script_step"] = SAVED - 1  # it may count from 0
    assert not_passed(judged(run)) == []
    run.saved[1].appended["script_step"] = OLDER
    seen = f"the script's own step is not the same in the files of step {SAVED}: "
    assert said(judged(run), "checkpoint", "fail", seen)


def test_where_a_host_has_gone_numbers_of_an_older_save_are_unknown(run: GoodRun, judged: Judge) -> None:
    content_of_an_older_step(run)
    run.saved[1].appended["step_num"] = OLDER
    run.add("harness", record(11.0, "host.vanished", node=1, host="second"))
    assert {finding.verdict for finding in numbers(judged, run)} == {"unknown"}
    assert not said(judged(run), "checkpoint", "fail", "")


def test_an_end_of_life_file_lacks_no_number_that_periodic_ones_of_its_name_hold(judged: Judge) -> None:
    """MindFormers gives both the same names."""
    run = good_run()
    assert run.plan.checkpoint is not None
    for rank in (0, 1):
        saved = run.saved[rank]
        old = saved.path.removeprefix("job/")
        saved.path = f"job/output/rank_{rank}/tiny_rank_{rank}-1_{SAVED}.ckpt"
        for event in ("checkpoint.begin", "checkpoint.end"):
            for entry in run.events(event, rank=rank, kind="end-of-life"):
                entry["path"] = f"/elsewhere/r1/{saved.path}"
        for event in ("load.begin", "load.end"):
            for entry in run.events(event, path=old):
                entry["path"] = saved.path.removeprefix("job/")
        periodic = f"output/rank_{rank}/tiny_rank_{rank}-1_3.ckpt"
        run.saved[10 + rank] = Saved(f"job/{periodic}", state_after(rank, 3), {"epoch_num": 1, "step_num": 3})
    assert not said(judged(run), "checkpoint", "fail", ONE_STEP)
    del run.saved[1].appended["step_num"]
    seen = "rank 1's file holds no step_num, as others of its kind do: tiny_rank_1-1_5.ckpt"
    assert said(judged(run), "checkpoint", "fail", f"{ONE_STEP} | {seen}")


def test_in_mindformers_legacy_layout_the_content_of_an_older_step_fails(judged: Judge) -> None:
    run = moved_run(lambda rank, step: f"output/checkpoint/rank_{rank}/tiny_rank_{rank}-1_{step}.safetensors")
    for saved in run.saved.values():
        saved.appended = {"epoch_num": 1, "step_num": SAVED}
    assert not_passed(judged(run)) == []
    content_of_an_older_step(run)
    seen = f"rank 1's file holds step_num {SAVED}, global_step {OLDER}, and by its record the rank has saved"
    assert said(judged(run), "checkpoint", "fail", seen)
    right_but("step_num", None)(run)
    assert said(judged(run), "checkpoint", "fail", "rank 1's file holds no step_num, as others of its kind do")


@pytest.mark.parametrize(
    ("common", "seen"),
    [
        ({"step_num": SAVED, "global_step": OLDER}, f"holds step_num {SAVED}, global_step {OLDER}, and by its record"),
        ({"step_num": SAVED, "epoch_num": 4}, f"file of step {SAVED} holds epoch 4, and that step is in epoch 2"),
    ],
)
def test_in_mindformers_new_layout_what_is_written_down_beside_the_parts_counts(
    judged: Judge, common: dict[str, int], seen: str
) -> None:
    run = new_layout()
    run.replan(steps_per_epoch=4)
    path = f"job/output/checkpoint/iteration_{SAVED:08d}/common.json"
    for saved in run.saved.values():
        del saved.state["global_step"]
    run.others[path] = json.dumps({"step_num": SAVED, "global_step": SAVED, "epoch_num": 2}).encode()
    assert not said(judged(run), "checkpoint", "fail", ONE_STEP)
    run.others[path] = json.dumps(common).encode()
    findings = said(judged(run), "checkpoint", "fail", seen)
    assert findings and {finding.expected for finding in findings} == {ONE_STEP}, numbers(judged, run)


def test_in_mindformers_new_layout_the_directory_says_the_step_where_no_save_is_recorded(judged: Judge) -> None:
    run = new_layout()
    without_records(run)
    for rank, saved in run.saved.items():
        saved.state = state_after(rank, OLDER)
    path = f"job/output/checkpoint/iteration_{SAVED:08d}/common.json"
    run.others[path] = json.dumps({"step_num": OLDER, "global_step": OLDER}).encode()
    seen = f"holds step {OLDER}, and the name of its directory says step {SAVED}"
    assert said(judged(run), "checkpoint", "fail", f"{ONE_STEP} | rank 1's file {seen}")
