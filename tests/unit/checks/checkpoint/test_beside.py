"""An average of the weights, or a copy of them in another type, is saved beside a checkpoint and is none itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kit.runs.good_run import LAST, SAVED, GoodRun, Saved, pid_of, record, state_after
from tests.kit.runs.restored_run import HOLDERS, restored_run, slices_of
from tests.unit.checks.judging import Judge, not_passed, said

State = dict[str, Any]
WITHIN = 23.95
"""Seconds: the training of the resumed job ends at 24."""


def weights_of(state: State) -> State:
    return {name: value for name, value in state.items() if name.startswith("layer1.")}


def averaged(state: State) -> State:
    return {name: value * np.float32(0.9) + 1 for name, value in weights_of(state).items()}


def quantized(state: State) -> State:
    return {name: (value * 100).astype("int32") for name, value in weights_of(state).items()}


def saving(make: Callable[[State], State], *, whole: bool = True) -> GoodRun:
    """Every rank of the resumed job saves its state after the last step, and beside it what is made of its weights."""
    run = restored_run()
    for rank in range(4):
        state = state_after(rank, LAST)
        files = {"state": state if whole else weights_of(state), "beside": make(state)}
        where: dict[str, Any] = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank), "step": LAST}
        for place, (name, content) in enumerate(files.items()):
            path = f"{name}_{rank}.ckpt"
            run.saved[10 * (place + 1) + rank] = Saved(f"job/{path}", content, {})
            for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
                at = WITHIN + 0.01 * (2 * place + number)
                run.add(f"resume-rank_{rank}", record(at, event, kind="periodic", path=path, **where))
    return run


@pytest.mark.parametrize("make", [averaged, quantized])
def test_other_values_beside_a_whole_checkpoint_of_the_same_save_are_nobodys_state(
    judged: Judge, make: Callable[[State], State]
) -> None:
    judgement = judged(saving(make))
    assert not_passed(judgement) == []
    assert said(judgement, "checkpoint", "pass", "7 files compared by digest")


def test_without_a_whole_checkpoint_they_are_wrong(judged: Judge) -> None:
    assert said(judged(saving(averaged, whole=False)), "checkpoint", "fail", f"file of step {LAST} differ: layer1.bias")


def mixed(state: State) -> State:
    return {**weights_of(state), "layer1.bias": state["layer1.bias"] + 1}


def with_moments(state: State) -> State:
    return {**state, **averaged(state)}


def of_the_step_before(_: State) -> State:
    return weights_of(state_after(1, LAST - 1))


@pytest.mark.parametrize("make", [mixed, with_moments, of_the_step_before])
def test_a_mixture_a_whole_state_and_an_older_one_are_compared_all_the_same(
    judged: Judge, make: Callable[[State], State]
) -> None:
    assert said(judged(saving(make)), "checkpoint", "fail", f"file of step {LAST} differ: layer1.bias")


def loading(*order: str) -> GoodRun:
    """The ranks have saved an average beside the checkpoint, and load these when they are started again."""
    run = restored_run()
    for event in ("checkpoint.begin", "checkpoint.end"):
        for entry in list(run.events(event, attempt="train")):
            path = str(entry["path"])
            entry["path"] = path.replace("sliced-1_5", "state")
            later = {"mono": entry["mono"] + 10, "wall": entry["wall"] + 10}
            run.add(f"train-rank_{entry['rank']}", {**entry, "path": path.replace("sliced-1_5", "average"), **later})
    for rank in sorted(run.saved):
        state = run.saved[rank].state
        for place, (name, content) in enumerate((("state", state), ("average", averaged(state)))):
            run.saved[rank + 10 * place] = Saved(f"job/{slices_of(rank).replace('sliced-1_5', name)}", content, {})
    for event in ("load.begin", "load.end"):
        for entry in list(run.events(event, attempt="resume")):
            held = slices_of(HOLDERS[entry["rank"]][0])
            entry["path"] = held.replace("sliced-1_5", order[0])
            for number, name in enumerate(order[1:], 1):
                copy = {**entry, "path": held.replace("sliced-1_5", name), "mono": entry["mono"] + 10 * number}
                run.add(f"resume-rank_{entry['rank']}", copy)
    return run


@pytest.mark.parametrize("order", [("state", "average"), ("average", "state")])
def test_a_rank_goes_on_with_the_checkpoint_and_loads_the_average_for_itself(
    judged: Judge, order: tuple[str, str]
) -> None:
    assert SAVED == 5
    assert said(judged(loading(*order)), "resume", "pass", "4 ranks compared by digest")


def test_a_rank_that_loads_the_average_alone_does_not_go_on_with_it(judged: Judge) -> None:
    assert said(judged(loading("average")), "resume", "fail", "parameters of rank 1 are not the file's: layer1.bias")


def test_a_rank_that_goes_on_with_the_average_in_place_of_the_state_fails(judged: Judge) -> None:
    run = loading("state", "average")
    (initial,) = run.events("initial", attempt="resume", rank=1)
    initial["parameters"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "fail", "parameters of rank 1 are not the file's: layer1.bias")
