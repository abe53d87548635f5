"""A script may save its model and its optimizer in two files: together they are the save, and both are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chaos.plan.parts.resume import PlannedRestore
from tests.kit.runs.good_run import LAST, SAVED, GoodRun, Saved, pid_of, record, state_after
from tests.kit.runs.restored_run import HOLDERS, restored_run, slices_of
from tests.unit.checks.judging import Judge, not_passed, said

MODEL, OPTIMIZER = "model", "optimizer"
WITHIN = 23.95
"""Seconds: the training of the resumed job ends at 24."""


def part_of(state: dict[str, Any], part: str) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name.startswith("layer1.") == (part == MODEL)}


def saving(*parts: str, step: int = LAST) -> GoodRun:
    """Every rank of the resumed job saves these parts of its state, each in a file of its own."""
    run = restored_run()
    for rank in range(4):
        for place, part in enumerate(parts):
            path = f"{part}_{rank}.ckpt"
            run.saved[10 * (place + 1) + rank] = Saved(f"job/{path}", part_of(state_after(rank, step), part), {})
            where: dict[str, Any] = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank), "step": LAST}
            for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
                at = WITHIN + 0.01 * (2 * place + number)
                run.add(f"resume-rank_{rank}", record(at, event, kind="periodic", path=path, **where))
    return run


def test_two_files_of_one_save_hold_the_state_together(judged: Judge) -> None:
    assert not_passed(judged(saving(MODEL, OPTIMIZER))) == []


@pytest.mark.parametrize(
    ("part", "lacks"), [(MODEL, "lacks optimizer state: global_step"), (OPTIMIZER, "lacks parameters: layer1.bias")]
)
def test_one_of_the_two_files_alone_lacks_the_rest(judged: Judge, part: str, lacks: str) -> None:
    assert said(judged(saving(part)), "checkpoint", "fail", lacks)


def test_the_values_in_each_file_are_compared(judged: Judge) -> None:
    for place, name in ((11, "layer1.bias"), (21, "moments.layer1.bias")):
        run = saving(MODEL, OPTIMIZER)
        run.saved[place].state[name] = np.zeros(3, np.float32)
        assert said(judged(run), "checkpoint", "fail", f"parameters in rank 1's file of step {LAST} differ: {name}")


def test_files_of_two_steps_are_no_save_together(judged: Judge) -> None:
    run = saving(MODEL, OPTIMIZER)
    for event in run.events("checkpoint.end", attempt="resume", path="model_1.ckpt"):
        event["step"] = LAST - 1
    assert said(judged(run), "checkpoint", "fail", "lacks parameters: layer1.bias")


def loading(*parts: str) -> GoodRun:
    """The ranks have saved both parts after the step of the fault, and load these when they are started again."""
    run = restored_run()
    for event in ("checkpoint.begin", "checkpoint.end"):
        for entry in list(run.events(event, attempt="train")):
            path = str(entry["path"])
            entry["path"] = path.replace("sliced-1_5", MODEL)
            copy = {**entry, "path": path.replace("sliced-1_5", OPTIMIZER)}
            run.add(f"train-rank_{entry['rank']}", {**copy, "mono": entry["mono"] + 10, "wall": entry["wall"] + 10})
    for rank in sorted(run.saved):
        state = run.saved[rank].state
        for place, part in enumerate((MODEL, OPTIMIZER)):
            path = slices_of(rank).replace("sliced-1_5", part)
            run.saved[rank + 10 * place] = Saved(f"job/{path}", part_of(state, part), {})
    for event in ("load.begin", "load.end"):
        for entry in list(run.events(event, attempt="resume")):
            held = slices_of(HOLDERS[entry["rank"]][0])
            entry["path"] = held.replace("sliced-1_5", parts[0])
            for number, part in enumerate(parts[1:], 1):
                copy = {**entry, "path": held.replace("sliced-1_5", part), "mono": entry["mono"] + 10 * number}
                run.add(f"resume-rank_{entry['rank']}", copy)
    return run


def test_a_rank_goes_on_with_what_both_files_hold(judged: Judge) -> None:
    assert SAVED == 5
    for order in ((MODEL, OPTIMIZER), (OPTIMIZER, MODEL)):
        judgement = judged(loading(*order))
        assert {check for _, check, *_ in not_passed(judgement)} <= {"checkpoint"}, not_passed(judgement)
        assert said(judgement, "resume", "pass", "4 ranks compared by digest")


@pytest.mark.parametrize("part", [MODEL, OPTIMIZER])
def test_a_part_that_was_not_loaded_is_missed(judged: Judge, part: str) -> None:
    assert said(judged(loading(part)), "resume", "fail", "goes on with parameters that its file does not hold")


@pytest.mark.parametrize("order", [(MODEL, OPTIMIZER), (OPTIMIZER, MODEL)])
@pytest.mark.parametrize("name", ["layer1.bias", "moments.layer1.bias"])
def test_a_value_that_either_file_does_not_hold_fails(judged: Judge, order: tuple[str, str], name: str) -> None:
    run = loading(*order)
    (initial,) = run.events("initial", attempt="resume", rank=1)
    initial["parameters"][name] = "0" * 32
    assert said(judged(run), "resume", "fail", f"parameters of rank 1 are not the file's: {name}")


SIDE = "generators"
GROUP = (0, 2)
"""A replica group of the good run."""


def beside(
    *, every_rank: bool = False, whole: bool = True, lost: bool = False, directory: str = "checkpoint-12"
) -> GoodRun:
    """Rank 0 saves model and optimizer for its replica group, and each rank of it keeps a file of its own beside."""
    run = saving()
    run.replan(every_rank_saves=every_rank)
    state = state_after(0, LAST)
    state = state if whole else part_of(state, MODEL)
    files = [
        (0, f"checkpoint-12/{part}.ckpt", part_of(state, part)) for part in (MODEL, OPTIMIZER) if part_of(state, part)
    ]
    own = {"cpu": np.zeros(3, np.float32)}
    files += [(rank, f"{directory if rank else 'checkpoint-12'}/{SIDE}_{rank}.ckpt", own) for rank in GROUP]
    if lost:
        files.append((2, "checkpoint-12/of_2.ckpt", part_of(state_after(2, LAST), MODEL)))
    for place, (rank, path, content) in enumerate(files):
        run.saved[100 + place] = Saved(f"job/{path}", content, {})
        where: dict[str, Any] = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank), "step": LAST}
        for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
            at = WITHIN + 0.005 * place + 0.001 * number
            run.add(f"resume-rank_{rank}", record(at, event, kind="periodic", path=path, **where))
    return run


def test_files_that_ranks_keep_beside_the_checkpoint_need_no_parameters(judged: Judge) -> None:
    """As a trainer does that saves for all ranks on rank 0, and the state of the generators on each."""
    assert not_passed(judged(beside())) == []


@pytest.mark.parametrize(
    "spoilt",
    [
        {"every_rank": True},  # then no file of another rank will do
        {"directory": "elsewhere"},
        {"whole": False},  # the optimizer's state is nowhere
    ],
)
def test_a_file_without_parameters_fails_where_nothing_beside_it_has_them(
    judged: Judge, spoilt: dict[str, Any]
) -> None:
    assert said(judged(beside(**spoilt)), "checkpoint", "fail", "rank 2's file lacks parameters: ")


def test_a_file_with_a_part_of_the_parameters_is_none_beside(judged: Judge) -> None:
    judgement = judged(beside(lost=True))
    assert said(judgement, "checkpoint", "fail", "rank 2's file lacks optimizer state: ")


def loading_with_own(*, holds: bool = True, last_own: bool = True) -> GoodRun:
    """Rank 2 goes on from rank 0's two files, and from a file of its own that rank 0's directory has."""
    run = loading(MODEL, OPTIMIZER)
    holders = {**HOLDERS, 2: (0, 2)}  # one rank saves for its group, so any file of the group will do
    run.replan(every_rank_saves=False, restore=PlannedRestore(SAVED, (2,), holders))
    path = slices_of(0).replace(f"sliced-1_{SAVED}", f"{SIDE}_2")
    run.saved[200] = Saved(f"job/{path}", {"cpu": np.zeros(3, np.float32)}, {})
    trained = run.only("digest", attempt="train", rank=2, step=SAVED)
    where = {name: trained[name] for name in ("attempt", "rank", "pid", "step")}
    for number, event in enumerate(("checkpoint.begin", "checkpoint.end"), 1):
        times = {name: trained[name] + number for name in ("mono", "wall")}
        run.add("train-rank_2", {"event": event, "kind": "periodic", "path": path, **where, **times})
    for event in ("load.begin", "load.end"):
        (last, *_) = sorted(
            run.events(event, attempt="resume", rank=2), key=lambda entry: entry["mono"], reverse=last_own
        )
        at = last["mono"] + (1 if last_own else -1)
        run.add("resume-rank_2", {**last, "path": path, "mono": at})
    if not holds:
        run.drop("load.begin", attempt="resume", rank=2, path=slices_of(0).replace(f"sliced-1_{SAVED}", OPTIMIZER))
        run.drop("load.end", attempt="resume", rank=2, path=slices_of(0).replace(f"sliced-1_{SAVED}", OPTIMIZER))
    return run


@pytest.mark.parametrize("last_own", [True, False])
def test_a_rank_goes_on_with_the_checkpoint_and_its_own_file_beside(judged: Judge, last_own: bool) -> None:
    judgement = judged(loading_with_own(last_own=last_own))
    assert said(judgement, "resume", "pass", "4 ranks compared by digest")
    assert [finding for finding in not_passed(judgement) if finding[1] == "resume"] == []


def test_its_own_file_beside_stands_for_no_part_of_the_checkpoint(judged: Judge) -> None:
    judgement = judged(loading_with_own(holds=False))
    assert said(judgement, "resume", "fail", "rank 2 goes on with parameters that its file does not hold: global_step")
