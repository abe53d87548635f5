"""The good run of a job that is not bit-exact: run and baseline have noise of their own, and samples beside digests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chaos.agent.digests import Sampler
from chaos.plan.parts.equivalence import StateTolerance
from tests.kit.runs.good_run import (
    GROUPS,
    MONO,
    SAVED,
    GoodRun,
    Record,
    State,
    digests_of,
    good_run,
    loss_after,
    state_after,
)
from tests.kit.runs.repaired_run import STRUCK, uce_run

NOISE = 1e-3
"""The relative size of the noise."""

LIMITS = (StateTolerance("moments.*", 0.01, 0.02), StateTolerance("layer1.*", 0.01, 0.02))
"""Limits that the noise never comes near to."""

Change = Callable[[int, int, State], None]
"""Changes a state of the run, by rank and step."""


def noisy_state(rank: int, step: int, run: int) -> State:
    """The state of a rank after a step in the run of that number: counters and the first state have no noise."""
    state = state_after(rank, step)
    group = next(index for index, ranks in enumerate(GROUPS) if rank in ranks)
    source = np.random.default_rng((run, group, step))
    for name, array in state.items():
        if step and "layer1" in name:
            state[name] = (array * (1 + NOISE * source.uniform(-1, 1, array.shape))).astype(array.dtype)
    return state


def tolerant_run(change: Change = lambda rank, step, state: None) -> GoodRun:
    """A run with noise that recovers well; ``change`` alters its states after the resume."""
    run = good_run()
    run.replan(loss_tolerance=0.01, mean_tolerance=0.005, state_tolerances=LIMITS, false_alarm=0.01)
    assert run.baseline is not None
    for number, files in enumerate((run.files, run.baseline)):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] in ("initial", "digest"):
                _with_noise(event, number, change)
    for rank, saved in run.saved.items():
        saved.state = noisy_state(rank, SAVED, 0)
    return run


def tolerant_repair(restored: Change = lambda rank, step, state: None) -> GoodRun:
    """A run with noise that repairs an error online; ``restored`` alters the states after the repair."""
    run = uce_run()
    run.replan(loss_tolerance=0.01, state_tolerances=(StateTolerance("*", 0.3, 0.3),), false_alarm=0.01)
    assert run.baseline is not None
    for number, files in enumerate((run.files, run.baseline)):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] not in ("initial", "digest"):
                continue
            repaired = event["event"] == "initial" and event["mono"] > MONO + 10_000_000_000
            step = event.get("step", STRUCK - 1 if repaired else 0)
            state = noisy_state(event["rank"], step, number)
            if repaired:
                restored(event["rank"], step, state)
            event["parameters"] = digests_of(state)
            event["samples"] = Sampler(1).samples(state.items())
    return run


def _with_noise(event: Record, run: int, change: Change) -> None:
    rank, begins = event["rank"], SAVED if event["attempt"] == "resume" else 0
    step = event.get("step", begins)
    state = noisy_state(rank, step, run)
    if event["event"] == "digest":
        noise = np.random.default_rng((7, run, rank, step)).uniform(-1, 1)
        event["loss"] = (loss_after(rank, step) * (1 + NOISE * noise)).hex()
        if event["attempt"] == "resume":
            change(rank, step, state)
    event["parameters"] = digests_of(state)
    event["samples"] = Sampler(1).samples(state.items())
