"""What the plan makes of a spike: rolled back, recorded, or nothing; and what TRE cannot be combined with."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.fault_tolerance import Watch
from chaos.plan.parts.response import Recovery
from chaos.plan.points import PHASE_ORDER
from chaos.plan.render import render
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import Planner


def spike(step: int = 8, phase: str = "allreduce.enter", ranks: tuple[int, ...] = (1,), **parameters: Any) -> Any:
    return {
        "id": f"spike-{step}",
        "kind": "spike",
        "target": {"ranks": ranks},
        "trigger": {"step": step, "phase": phase},
        "parameters": parameters or {"norm": 7.5},
    }


def kill(step: int, phase: str, rank: int = 2) -> Any:
    return {"kind": "kill", "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}}


def job(**other: Any) -> dict[str, Any]:
    watch = {"threshold": 5.0, **other.pop("tre", {})}
    return {"steps": 12, "protection": ("TRE",), "checkpoint_interval": 3, "tre": watch, **other}


@pytest.mark.parametrize(
    ("step", "interval", "saved"), [(8, 3, 6), (7, 3, 6), (6, 3, 3), (4, 3, 3), (12, 1, 11), (2, 1, 1), (12, 11, 11)]
)
def test_every_rank_goes_back_to_the_newest_checkpoint_before_the_step(
    plan: Planner, step: int, interval: int, saved: int
) -> None:
    made = plan(spike(step), job=job(checkpoint_interval=interval))
    assert made.response.mechanism == "TRE"
    assert made.response.recoveries == (Recovery("TRE", (f"spike-{step}",), saved, reads_checkpoint=True),)
    assert made.equivalence.comparable is None
    assert made.fault_tolerance.watch == Watch(5.0)
    assert not made.resume.resumes
    assert set(made.response.budget.phases) == {"detection", "load", "first step", "caught up"}
    assert f"so the newest one holds step {saved}" in " ".join(made.explanation.reasons)


def test_it_needs_neither_the_sdk_nor_replicas_nor_sink_size_1(plan: Planner) -> None:
    made = plan(spike(ranks=(0,)), cluster={"ranks": 1}, job=job(sink_size=4, checkpoint_interval=4))
    assert made.response.mechanism == "TRE"
    assert not any("MindIO" in reason for reason in made.explanation.reasons)


def test_a_factor_is_taken_for_enough(plan: Planner) -> None:
    assert plan(spike(factor=100, ranks=(1, 2)), job=job()).response.mechanism == "TRE"


@pytest.mark.parametrize(
    ("fault", "watch", "reason"),
    [
        (spike(norm=4.9), {}, "to a global norm of 4.9, below the threshold 5: nothing happens"),
        (spike(), {"recorded": (8,)}, "which abnormal_global_norm.json of an earlier run lists already"),
    ],
)
def test_a_spike_that_is_not_answered_changes_the_run_for_good(
    plan: Planner, fault: Any, watch: dict[str, Any], reason: str
) -> None:
    made = plan(fault, job=job(tre=watch))
    assert (made.response.mechanism, made.response.recoveries) == (None, ())
    assert made.equivalence.comparable is not None
    assert made.equivalence.comparable.until == 7
    assert reason in " ".join(made.explanation.reasons)
    assert "up to step 8; after that not compared" in render(made)
    assert loads(dumps(made)) == made


def test_without_anybody_who_watches_nothing_happens(plan: Planner) -> None:
    made = plan(spike(), job={"steps": 12, "protection": ()})
    assert made.response.mechanism is None
    assert "nothing watches the global norm" in " ".join(made.explanation.reasons)


def test_a_repeated_spike_is_recorded_and_kept(plan: Planner) -> None:
    made = plan(spike(norm=7.5, repeat=1), job=job())
    assert [recovery.step for recovery in made.response.recoveries] == [6]
    assert made.equivalence.comparable is not None
    assert made.equivalence.comparable.until == 7


def test_with_asynchronous_checkpoints_the_loss_is_not_promised(plan: Planner) -> None:
    made = plan(spike(), job=job(storage={"asynchronous_saving": True}))
    assert [recovery.step for recovery in made.response.recoveries] == [6]
    assert made.equivalence.comparable is not None
    assert made.equivalence.comparable.until == 5
    assert "asynchronous checkpoints" in made.equivalence.comparable.why


def test_a_rollback_to_a_save_that_is_just_being_written_is_a_matter_of_time(plan: Planner) -> None:
    text = plan.refused(spike(7), job=job(storage={"asynchronous_saving": True}))
    assert "step 6 is just being written in the background" in text and "use a later step" in text
    assert [recovery.step for recovery in plan(spike(7), job=job()).response.recoveries] == [6]


def test_what_is_saved_in_the_background_leaves_mindformers_rollback_open(plan: Planner) -> None:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindformers", restarts=True)
    text = plan.refused(spike(), job=job(storage={"asynchronous_saving": True}))
    assert "the checkpoint for the rollback" in text and "save in the foreground" in text
    assert [recovery.step for recovery in plan(spike(), job=job()).response.recoveries] == [6]


def test_several_spikes_are_rolled_back_one_after_another(plan: Planner) -> None:
    made = plan(spike(11), spike(8), job=job())
    assert [(recovery.faults, recovery.step) for recovery in made.response.recoveries] == [
        (("spike-8",), 6),
        (("spike-11",), 9),
    ]


def test_a_rank_that_is_lost_in_the_rollback_leaves_nothing_to_save(plan: Planner) -> None:
    made = plan(spike(), kill(8, "checkpoint.load"), job=job(protection=("TTP", "TRE")), expect={"checkpoint": "none"})
    assert made.response.mechanism == "none"
    (recovery,) = made.response.recoveries
    assert (recovery.mechanism, recovery.succeeds, recovery.step) == ("TRE", False, 6)
    assert made.equivalence.comparable is not None
    assert made.equivalence.comparable.until == 7
    assert "holds the update of that step for unfinished" in " ".join(made.explanation.reasons)


@pytest.mark.parametrize(
    ("faults", "settings", "message"),
    [
        ([spike()], {"tre": {"skip_data": True}}, "cannot be turned on at the same time, please choose one."),
        ([], {"protection": ("TTP",)}, "TRE is not in job.protection"),
        ([spike()], {"checkpoint_interval": None}, "no periodic checkpoint is saved"),
        ([spike(3)], {}, "the first checkpoint is saved after step 3"),
        ([spike(1)], {"checkpoint_interval": 1}, "the first checkpoint is saved after step 1"),
        ([spike(phase="step.end")], {}, "its trigger must be one step with phase allreduce.enter"),
        ([spike(norm=7.5, factor=2)], {}, "exactly one of norm and factor"),
        ([spike(repeat=1)], {}, "exactly one of norm and factor"),
        ([spike(norm=-1)], {}, "norm must be a number above 0"),
        ([spike(factor="2")], {}, "factor must be a number above 0"),
        ([spike(norm=7.5, repeat=2)], {}, "repeat must be 0 or 1"),
        ([spike(norm=4.0, repeat=1)], {}, "is trained only once, since nothing undoes it"),
        ([spike(norm=5.001)], {}, "so near to the threshold 5 that rounding decides"),
        ([spike(norm=7.5, many=1)], {}, "a spike has no parameter 'many'"),
        ([spike(ranks=(1, 2))], {}, "a spike with a norm hits one rank"),
        ([spike(), {**spike(), "id": "other"}], {}, "both spike in step 8"),
        ([spike(), kill(5, "step.begin")], {"protection": ("TTP", "TRE")}, "may come before the rollback"),
        ([spike(), kill(8, "step.end")], {"protection": ("TTP", "TRE")}, "may come before the rollback"),
        ([spike(), kill(8, "checkpoint.load")], {}, "with TRE alone nothing detects"),
        (
            [spike(), kill(8, "checkpoint.load")],
            {"protection": ("TTP", "TRE")},
            "write expect.checkpoint: none if the scenario is to prove that",
        ),
        ([kill(6, "checkpoint.load")], {"protection": ("TTP", "TRE")}, "nothing loads a checkpoint in step 6"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    plan: Planner, faults: list[Any], settings: dict[str, Any], message: str
) -> None:
    assert message in " ".join(plan.refused(*faults, job=job(**settings)).split())


def test_slices_are_watched_by_a_kind_that_can_but_a_spike_in_them_is_not_planned() -> None:
    sliced = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
    message = "the global norm is watched in jobs of pure data parallelism only"
    assert message in Planner().refused(cluster=sliced, job=job())
    able = Planner(JobTraits(frozenset(PHASE_ORDER), "mindformers", storage="checkpoints", watches_slices=True))
    assert able(cluster=sliced, job=job()).fault_tolerance.watch == Watch(5.0)
    assert message in able.refused(spike(), cluster=sliced, job=job())
