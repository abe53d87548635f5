"""Over random topologies and faults the plan agrees with an independent model of the ranks and what they hold.

Where the model says that nothing can be promised, the plan must refuse; where the plan refuses more than that, it must
be for one of the reasons that it is known to have.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from chaos.plan.model import Plan
from chaos.scenario.errors import ScenarioError
from tests.kit.examples import examples
from tests.unit.plan.conftest import Planner
from tests.unit.plan.replica_model import PHASES, Cluster, Hit, Job, Story, tell

STEPS = 7
CAUTIOUS = (
    "is not apart from fault",
    "is lost only once",
    "the agent kills all ranks at once",
    "or after it has started them again: they are of another replica group",
    "whoever is left finishes all",
    "so no rank waits for a repair",
    "would be a step behind",
    "whether the save finishes depends on timing",
    "a communication error arises while the gradients are exchanged",
    "not yet supported",
    "is not yet planned",
)
"""What the plan refuses though a model that knows the order of all events could tell how it ends."""

KINDS: dict[str, dict[str, Any]] = {
    "kill": {"kind": "kill"},
    "suspend": {"kind": "stop"},
    "memory": {"kind": "uce"},
    "memory-low": {"kind": "uce", "parameters": {"strategy": "low level"}},
    "memory-timed": {"kind": "ecc"},
    "communication": {"kind": "hcce"},
}
PROTECTIONS = (
    (),
    ("TTP",),
    ("HCCE",),
    ("TTP", "HCCE"),
    ("UCE",),
    ("UCE", "HCCE"),
    ("ARF",),
    ("ARF", "UCE"),
    ("ARF", "UCE", "HCCE"),
    ("RSC",),
)


@st.composite
def clusters(draw: st.DrawFn, most: int) -> Cluster:
    shards = draw(st.none() | st.integers(1, 3))
    copies = draw(st.sampled_from((2, 3, 2, 3, 2, 4, 1)))
    return Cluster(copies * (shards or 1), draw(st.integers(1, most)), draw(st.integers(1, most)), shards)


@st.composite
def jobs(draw: st.DrawFn, most: int = 2) -> Job:
    protection = draw(st.sampled_from(PROTECTIONS))
    agent = bool({"ARF", "RSC"} & set(protection)) or draw(st.booleans())
    outside = not agent and draw(st.booleans())
    interval = draw(st.integers(1, 3)) if "RSC" in protection else None
    return Job(draw(clusters(most)), STEPS, protection, agent, outside, interval)


@st.composite
def cases(draw: st.DrawFn, most: int = 2) -> tuple[Job, list[Hit]]:
    """A job and its faults: mostly one after another, each but the last of a kind that the training goes on after."""
    job = draw(jobs(most))
    kinds = [*KINDS] if job.protection != ("RSC",) else ["kill"]
    if "ARF" in job.protection:
        kinds.remove("suspend")  # what a cluster does about a process that is stopped, and alive, is nobody's promise
    survived = [kind for kind in kinds if _goes_on(kind, job)]
    wild = draw(st.integers(0, 4)) == 0 or not survived
    count = draw(st.integers(1, 3)) if survived or wild else 1
    steps = [draw(st.integers(1, STEPS)) for _ in range(count)]
    if not wild:
        steps = sorted(draw(st.permutations(range(2, STEPS)))[:count])
    hits = []
    for number, step in enumerate(steps):
        last = number == count - 1
        kind = draw(st.sampled_from(kinds if wild or last else survived))
        phases = PHASES[:3] if kind == "communication" else PHASES
        ranks = draw(st.sets(st.integers(0, job.cluster.ranks - 1), min_size=1, max_size=3))
        hits.append(Hit(kind, frozenset(ranks), step, draw(st.sampled_from(phases))))
    return job, [hit for index, hit in enumerate(hits) if not any(_meet(hit, other) for other in hits[:index])]


def _goes_on(kind: str, job: Job) -> bool:
    needs = {"kill": {"ARF", "RSC"}, "communication": {"HCCE", "UCE"}, "suspend": set()}
    return bool(needs.get(kind, {"UCE"}) & job.on)


def _meet(hit: Hit, other: Hit) -> bool:
    """Whether both strike the same rank at the same barrier, where their order in the file decides."""
    return (hit.step, hit.phase) == (other.step, other.phase) and bool(hit.ranks & other.ranks)


def planned(plan: Planner, job: Job, hits: list[Hit], *, without_checkpoint: bool) -> Plan:
    cluster = job.cluster
    return plan(
        *(
            {
                **KINDS[hit.kind],
                "target": {"ranks": tuple(hit.ranks)},
                "trigger": {"step": hit.step, "phase": hit.phase},
            }
            for hit in hits
        ),
        cluster={
            "ranks": cluster.ranks,
            "parallel": {
                "data_parallel": cluster.data,
                "model_parallel": cluster.model,
                "pipeline_stage": cluster.stages,
                "enable_parallel_optimizer": cluster.shards is not None,
                "optimizer_weight_shard_size": cluster.shards,
            },
        },
        job={
            "steps": job.steps,
            "protection": job.protection,
            "agent": job.agent,
            **({"controller": "outside"} if job.controller_outside else {}),
            "checkpoint_interval": job.interval,
        },
        expect={"checkpoint": "none"} if without_checkpoint else {},
    )


def compare(plan: Planner, job: Job, hits: list[Hit], seed: int) -> None:
    stories = [tell(job, hits, random.Random(seed + more), ahead=ahead) for more in range(2) for ahead in (True, False)]
    story = stories[0]
    if any(other != story for other in stories):
        story = replace(story, why="it depends on which rank is faster")
    if job.on & {"TTP", "UCE", "ARF"} and job.cluster.data // (job.cluster.shards or 1) < 2:
        story = replace(story, why="HA: the mechanism needs a replica of every rank")
    try:
        found = planned(plan, job, hits, without_checkpoint=story.ends_at is not None and story.saved is None)
    except ScenarioError as error:
        cautious = [reason for reason in CAUTIOUS if reason in str(error)]
        event(f"refused: {story.why or cautious}")
        assert story.why is not None or cautious, f"{error}\n{story}"
        return
    if story.ends_at is not None and story.saved is None:
        with suppress(ScenarioError):  # whoever expects a checkpoint is told that there is none
            assert planned(plan, job, hits, without_checkpoint=False).checkpoint is None
    event(f"planned: {[recovery.mechanism for recovery in found.response.recoveries]} {found.response.mechanism}")
    assert story.why is None, story.why
    agree(found, job, story)


def agree(found: Plan, job: Job, story: Story) -> None:
    going_on = [
        (recovery.mechanism, recovery.step, frozenset(recovery.restarted), frozenset(recovery.copied))
        for recovery in found.response.goes_on
    ]
    assert going_on == [
        (recovery.mechanism, recovery.step, recovery.restarted, recovery.copied) for recovery in story.recoveries
    ]
    if story.saved is None:
        assert found.checkpoint is None
        ended = story.ends_at is not None
        last = story.recoveries[-1].mechanism if story.recoveries else None
        assert found.response.mechanism == ("none" if ended else last)
        return
    assert found.response.mechanism == "TTP"
    assert found.checkpoint is not None
    assert found.checkpoint.step == story.ends_at
    assert found.resume.resume_step == (story.ends_at or 0) + 1
    assert {frozenset(group) for group in found.layout.replica_groups} == set(story.saved)
    # HA: where both may, the lower rank saves ("stored in rank 0", "in rank 5" where rank 1 is gone).
    assert set(found.checkpoint.savers) == {min(entitled) for entitled in story.saved.values()}
    assert {frozenset(ranks) for ranks in found.checkpoint.entitled.values()} == set(story.saved.values())


def test_who_is_dead_cannot_be_suspended_at_the_same_barrier(plan: Planner) -> None:
    """Of two faults at one barrier the first in the file strikes first; a suspended rank can still be killed."""
    at = {"target": {"rank": 1}, "trigger": {"step": 5, "phase": "forward"}}
    kill, suspend = {"kind": "kill", **at}, {"kind": "stop", **at}
    assert "it is lost only once" in plan.refused(kill, suspend)
    assert plan(suspend, kill).response.mechanism == "TTP"


@pytest.mark.parametrize("protection", [(), ("TTP",)])
def test_a_loss_behind_the_last_all_reduce_is_refused_whatever_is_on(
    plan: Planner, protection: tuple[str, ...]
) -> None:
    fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 10, "phase": "optimizer.update"}}
    assert "whoever is left finishes all 10 steps" in plan.refused(fault, job={"protection": protection})


@examples(120)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_the_plan_agrees_with_the_model(plan: Planner, case: tuple[Job, list[Hit]], seed: int) -> None:
    compare(plan, *case, seed)


@pytest.mark.nightly
@settings(max_examples=4_000, derandomize=False)
@given(case=cases(most=4), seed=st.integers(0, 2**32))
def test_the_plan_agrees_with_the_model_at_length(plan: Planner, case: tuple[Job, list[Hit]], seed: int) -> None:
    compare(plan, *case, seed)
