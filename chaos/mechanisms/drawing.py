"""Parts of random scenarios: faults, times and places. A mechanism's recipe is made of them.

A drawn scenario is a proposal; the plan decides whether it is possible at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from chaos.plan.recovery.mechanism import SAVING
from chaos.plan.recovery.registry import Names, mechanisms

Keys: TypeAlias = dict[str, Any]
"""A section of a scenario as plain data."""

PHASES = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
GAP = 3
"""Steps between two faults that are answered one after the other."""

COPYING = Names(lambda mechanism: mechanism.in_place and mechanism.safeguarded)
"""Mechanisms that repair ranks in place with the state of a replica."""

Maker = Callable[[Random, Keys, Keys, int], Any]
"""Makes a fault in a step of a job: by cluster and job."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How random scenarios are made that a mechanism is meant to answer.

    ``turn`` is its place among all recipes. ``complete`` completes the cluster and the job, and returns the faults.
    """

    name: str
    turn: int
    complete: Callable[[Random, Keys, Keys], list[Any]]


def one_after_another(draw: Random, cluster: Keys, job: Keys, makers: list[Maker]) -> list[Any]:
    """Return faults in the order of their makers, far enough from each other."""
    steps, faults = apart(draw, job["steps"], len(makers)), []
    for number, (maker, step) in enumerate(zip(makers, steps, strict=True)):
        faults.append({**maker(draw, cluster, job, step), "id": f"fault-{number + 1}"})
    return faults


def apart(draw: Random, last: int, count: int) -> list[int]:
    """Return steps in order, at least ``GAP`` apart, from the second to the last but one."""
    slack = max(0, last - 3 - (count - 1) * GAP)
    return [2 + at + number * GAP for number, at in enumerate(sorted(draw.randint(0, slack) for _ in range(count)))]


def a_step(draw: Random, job: dict[str, Any]) -> int:
    """Return one step that is neither the first nor the last."""
    return apart(draw, job["steps"], 1)[0]


def a_loss(draw: Random, cluster: Keys, job: Keys, step: int) -> Any:
    """Return a fault that takes ranks."""
    kind = "suspend" if job["protection"] == [*SAVING] and draw.random() < 0.15 else "kill"
    return {
        "id": "loss",
        "kind": kind,
        "target": a_target(draw, cluster),
        "trigger": {"step": step, "phase": draw.choice(PHASES)},
    }


def an_error(draw: Random, cluster: Keys, job: Keys, step: int) -> Any:
    """Return an error that one of the job's mechanisms repairs."""
    kinds = [
        kind
        for mechanism in mechanisms().values()
        if mechanism.name in job["protection"]
        for kind in mechanism.drawn_errors
    ]
    kind = draw.choice(kinds)
    fault = {"id": "error", "kind": kind, "target": a_target(draw, cluster)}
    fault["trigger"] = {"step": step, "phase": draw.choice(PHASES)}
    if kind == "uce" and draw.random() < 0.2:
        fault["parameters"] = {"strategy": "low level"}
    return fault


def a_pause(draw: Random, cluster: Keys, job: Keys, step: int) -> Any:
    """Return a pause of all ranks."""
    parameters: dict[str, Any] = {"seconds": draw.choice((0.5, 1, 2))}
    if draw.random() < 0.3:
        parameters["switch"] = True
    every = {"ranks": list(range(cluster["ranks"]))}
    return {"id": "pause", "kind": "pause", "target": every, "trigger": {"step": step}, "parameters": parameters}


def a_target(draw: Random, cluster: dict[str, Any]) -> Any:
    """Return ranks in one of the notations of a target."""
    ranks = cluster["ranks"]
    shape = draw.random()
    if shape < 0.6:
        return {"rank": draw.randrange(ranks)}
    if shape < 0.75:
        return {"random": {"count": draw.randint(1, ranks - 1), "seed": draw.randrange(10**6)}}
    if shape < 0.85 and "nodes" in cluster:
        return {"node": draw.randrange(cluster["nodes"])}
    return {"ranks": sorted(draw.sample(range(ranks), draw.randint(1, ranks - 1)))}
