"""Random scenarios of recoveries that must be good: drawn by a seed, kept only if the plan says that they recover.

For soaks that look for false alarms. What is drawn is a proposal; the plan decides whether it is possible at all, and
whether it is one after which training goes on. The same seed and number give the same scenario again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from chaos.plan.model import Plan

PHASES = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
_GAP = 3
"""Steps between two faults that are answered one after the other."""
_THRESHOLD = 5.0

MIXED = "mixed"
"""Online repairs before an end-of-life checkpoint."""

Proposal = dict[str, Any]
"""A scenario's keys beside its name, as plain data."""


_REPAIRS = frozenset({"UCE", "HCCE", "ARF"})
"""Mechanisms after which MindSpore goes back into its training loop within the launch."""


def propose(draw: Random, *, kind: str, mechanism: str, variety: bool) -> Proposal:
    """A random scenario for a job of ``kind`` that ``mechanism`` is meant to answer; it may be an impossible one.

    With ``variety`` the job itself varies widely too. Without, it is one of a few, which share their fault-free runs.
    """
    ranks = draw.choice((2, 2, 3, 4, 4) if variety else (2, 2, 4))
    cluster: dict[str, Any] = {"ranks": ranks}
    if ranks == 4 and draw.random() < 0.25:
        cluster["parallel"] = {"data_parallel": 2, "model_parallel": 2}
    if ranks == 4 and draw.random() < 0.25:
        cluster["nodes"] = 2
    job: dict[str, Any] = {
        "kind": kind,
        "steps": draw.randint(9, 24) if variety else draw.choice((10, 14)),
        "seed": draw.randint(1, 100_000) if variety else draw.randint(1, 2),
    }
    if draw.random() < 0.25:
        job["steps_per_epoch"] = draw.randint(3, job["steps"]) if variety else 5
    faults = _RECIPES[mechanism](draw, cluster, job)
    return {"tags": ["random"], "cluster": cluster, "job": job, "faults": faults}


def recovers(plan: Plan) -> bool:
    """Whether a run of this plan is a good recovery: a mechanism succeeds, and training goes on to its end."""
    return plan.mechanism not in (None, "none") and (bool(plan.goes_on) or plan.resumes) and plan.finding is None


def counts_within_epoch(plan: Plan) -> bool:
    """Whether a fault follows a repair beyond the first epoch, after which MindSpore counts steps wrongly (F-06)."""
    earlier = plan.recoveries[:-1]
    return any(
        one.mechanism in _REPAIRS and one.succeeds and one.step is not None and one.step >= plan.steps_per_epoch
        for one in earlier
    )


def overwrites_names(plan: Plan) -> bool:
    """Whether MindSpore saves a later step over an earlier one's file (F-14): after a rollback its names count from the
    beginning of the epoch in which the rollback ends."""
    interval, epoch = plan.checkpoint_interval, plan.steps_per_epoch
    if interval is None:
        return False
    for one in plan.recoveries:
        if one.mechanism == "TRE" and one.succeeds and one.step is not None:
            first, left = one.step - one.step % epoch, plan.last_step - one.step
            anew = {first + min(count, left) for count in range(interval, left + interval, interval)}
            if anew & set(range(interval, one.step + 1, interval)):
                return True
    return False


def acting(plan: Plan) -> str:
    """The mechanisms that act, in order: ``UCE, TTP``; one that is tried in vain is in brackets."""
    return ", ".join(one.mechanism if one.succeeds else f"({one.mechanism})" for one in plan.recoveries)


# One recipe for each mechanism: completes cluster and job, returns the faults.


def _ttp(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job["protection"] = ["TTP"]
    if draw.random() < 0.4:
        job["controller"] = "outside"
    elif draw.random() < 0.3:
        job["agent"] = True
    return [_loss(draw, cluster, job, _step(draw, job))]


def _online(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job["protection"] = draw.choice((["UCE"], ["HCCE"], ["UCE", "HCCE"], ["UCE", "ARF"]))
    if "ARF" in job["protection"] or draw.random() < 0.2:
        job["agent"] = True
    return _one_after_another(draw, cluster, job, [_error] * draw.randint(1, 3))


def _arf(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job["protection"] = draw.choice((["ARF"], ["ARF", "UCE"]))
    job["agent"] = True
    makers: list[_Maker] = [_loss] * draw.choice((1, 1, 2))
    if "UCE" in job["protection"]:
        makers.insert(0, _error)
    faults = _one_after_another(draw, cluster, job, makers)
    if draw.random() < 0.2:
        last = {"kind": "kill", "target": {"rank": draw.randrange(cluster["ranks"])}}
        last["trigger"] = {"handler": draw.choice(("rebuild_group", "clean", "repair")), "after": faults[-1]["id"]}
        faults.append({"id": f"inside-{len(faults)}", **last})
    return faults


def _rsc(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job.update(protection=["RSC"], agent=True, checkpoint_interval=draw.randint(2, 4))
    return _one_after_another(draw, cluster, job, [_loss] * draw.choice((1, 1, 2)))


def _tre(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job.update(protection=["TRE"], tre={"threshold": _THRESHOLD}, checkpoint_interval=draw.randint(2, 4))
    if draw.random() < 0.3:
        job.update(protection=["TRE", "ARF"], agent=True)
    spike = {"kind": "spike", "target": {"rank": draw.randrange(cluster["ranks"])}, "parameters": {"norm": 7.5}}
    return [{"id": "spike", **spike, "trigger": {"step": _step(draw, job), "phase": "allreduce.enter"}}]


def _tsp(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    job["protection"] = draw.choice((["TSP"], ["TTP", "TSP"], ["TSP", "UCE"]))
    if draw.random() < 0.4:
        job["controller"] = "outside"
    makers: list[_Maker] = [_pause]
    if "TTP" in job["protection"] and draw.random() < 0.5:
        makers.append(_loss)
    if "UCE" in job["protection"]:
        makers.insert(draw.randrange(2), _error)
    return _one_after_another(draw, cluster, job, makers)


def _mixed(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> list[Any]:
    """Errors that are repaired online, then a loss that ends the launch."""
    job["protection"] = ["UCE", "HCCE"]
    return _one_after_another(draw, cluster, job, [*[_error] * draw.randint(1, 2), _loss])


_RECIPES: Mapping[str, Callable[[Random, dict[str, Any], dict[str, Any]], list[Any]]] = {
    "TTP": _ttp,
    "UCE": _online,
    "ARF": _arf,
    "RSC": _rsc,
    "TRE": _tre,
    "TSP": _tsp,
    MIXED: _mixed,
}
MECHANISMS = tuple(_RECIPES)
"""What can be asked for."""


# Faults.

_Maker = Callable[[Random, dict[str, Any], dict[str, Any], int], Any]


def _one_after_another(draw: Random, cluster: dict[str, Any], job: dict[str, Any], makers: list[_Maker]) -> list[Any]:
    steps, faults = _apart(draw, job["steps"], len(makers)), []
    for number, (maker, step) in enumerate(zip(makers, steps, strict=True)):
        faults.append({**maker(draw, cluster, job, step), "id": f"fault-{number + 1}"})
    return faults


def _apart(draw: Random, last: int, count: int) -> list[int]:
    """Steps in order, ``_GAP`` apart at least, from the second to the last but one."""
    slack = max(0, last - 3 - (count - 1) * _GAP)
    return [2 + at + number * _GAP for number, at in enumerate(sorted(draw.randint(0, slack) for _ in range(count)))]


def _step(draw: Random, job: dict[str, Any]) -> int:
    return _apart(draw, job["steps"], 1)[0]


def _loss(draw: Random, cluster: dict[str, Any], job: dict[str, Any], step: int) -> Any:
    kind = "suspend" if job["protection"] == ["TTP"] and draw.random() < 0.15 else "kill"
    return {
        "id": "loss",
        "kind": kind,
        "target": _target(draw, cluster),
        "trigger": {"step": step, "phase": draw.choice(PHASES)},
    }


def _error(draw: Random, cluster: dict[str, Any], job: dict[str, Any], step: int) -> Any:
    kinds = [kind for on, kind in (("UCE", "uce"), ("UCE", "ecc"), ("HCCE", "hcce")) if on in job["protection"]]
    kind = draw.choice(kinds)
    fault = {"id": "error", "kind": kind, "target": _target(draw, cluster)}
    fault["trigger"] = {"step": step, "phase": draw.choice(PHASES)}
    if kind == "uce" and draw.random() < 0.2:
        fault["parameters"] = {"strategy": "low level"}
    return fault


def _pause(draw: Random, cluster: dict[str, Any], job: dict[str, Any], step: int) -> Any:
    parameters: dict[str, Any] = {"seconds": draw.choice((0.5, 1, 2))}
    if draw.random() < 0.3:
        parameters["switch"] = True
    every = {"ranks": list(range(cluster["ranks"]))}
    return {"id": "pause", "kind": "pause", "target": every, "trigger": {"step": step}, "parameters": parameters}


def _target(draw: Random, cluster: dict[str, Any]) -> Any:
    ranks = cluster["ranks"]
    shape = draw.random()
    if shape < 0.6:
        return {"rank": draw.randrange(ranks)}
    if shape < 0.75:
        return {"random": {"count": draw.randint(1, ranks - 1), "seed": draw.randrange(10**6)}}
    if shape < 0.85 and "nodes" in cluster:
        return {"node": draw.randrange(cluster["nodes"])}
    return {"ranks": sorted(draw.sample(range(ranks), draw.randint(1, ranks - 1)))}
