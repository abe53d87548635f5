"""Errors that a device reports: which mechanism repairs them online, after which step, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.budgets import PROFILES
from chaos.plan.job_effect import COMMUNICATION, DEATH, MEMORY, JobEffect
from chaos.plan.model import Plan
from chaos.plan.parts.response import AFTER_RESTART, PHASES
from chaos.plan.recovery.mechanism import acts_on_error
from chaos.plan.recovery.vendor import DOCUMENT

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

BEFORE = ("step.begin", "forward", "allreduce.enter")
BEHIND = ("optimizer.update", "step.end", "checkpoint.begin", "checkpoint.write", "checkpoint.end")
UCE, HCCE = {"protection": ("UCE",)}, {"protection": ("HCCE",)}
PAIRS = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
"""Replica groups [0, 2] and [1, 3]."""


def error(kind: str, at: int | dict[str, Any], phase: str | None = None, **target: Any) -> dict[str, Any]:
    trigger = {"step": at, "phase": phase} if isinstance(at, int) else at
    return {"kind": kind, "target": target or {"rank": 1}, "trigger": trigger}


def repaired(plan: Plan) -> tuple[str | None, tuple[int, ...]]:
    """Mechanism and repair steps; that nothing is saved and nothing started again goes with every online repair."""
    assert (plan.checkpoint, plan.resume.resumes, plan.resume.resume_step) == (None, False, None)
    return plan.response.mechanism, tuple(
        recovery.step for recovery in plan.response.goes_on if recovery.step is not None
    )


# Which mechanism answers


@pytest.mark.parametrize(
    ("effect", "on", "mechanism"),
    [
        (MEMORY, ("UCE", "TTP"), "UCE"),
        (MEMORY, ("UCE", "HCCE"), "UCE"),
        (MEMORY, ("HCCE", "TTP", "ARF"), None),
        (COMMUNICATION, ("HCCE",), "HCCE"),
        (COMMUNICATION, ("UCE", "TTP"), "HCCE"),
        (COMMUNICATION, ("TTP", "TSP", "TRE"), None),
        (DEATH, ("UCE", "HCCE", "TTP"), None),
    ],
)
def test_the_mechanism_follows_from_the_error_and_what_is_on(
    effect: JobEffect, on: tuple[Any, ...], mechanism: str | None
) -> None:
    assert acts_on_error(effect, on) == mechanism


def test_a_communication_error_with_only_uce_on_is_still_repaired_as_one(plan: Planner) -> None:
    found = plan(error("hcce", 5), job=UCE)
    assert repaired(found) == ("HCCE", (4,))
    assert any(
        "with UCE on MindSpore's wrapper around the training handles this error" in why
        for why in found.explanation.reasons
    )


def test_the_reasons_name_the_error_the_mechanism_and_the_step(plan: Planner) -> None:
    memory = " ".join(plan(error("uce", 5, "forward"), job=UCE).explanation.reasons)
    assert f"Rank 1 has a memory error, and UCE repairs that online ({DOCUMENT}) with the state of a replica" in memory
    assert "at forward of step 5, before the gradients are in: no rank can finish step 5" in memory
    assert "all go on after step 4, rank 1 with the state of a replica, and step 5 is replayed." in memory
    late = " ".join(plan(error("uce", 5, "step.end"), job=UCE).explanation.reasons)
    assert "the others finish step 5 and block in step 6, so all go on after step 5" in late.replace("The", "the")
    lost = " ".join(plan(error("hcce", 5, ranks=(1, 2)), job=HCCE).explanation.reasons)
    assert "Ranks 1-2 have a communication error, and HCCE repairs that online" in lost
    assert "copies nothing" in lost


# The common step


@pytest.mark.parametrize("phase", BEFORE)
@pytest.mark.parametrize(("kind", "job"), [("uce", UCE), ("hcce", HCCE)])
def test_an_error_up_to_the_all_reduce_replays_its_step(
    plan: Planner, kind: str, job: dict[str, Any], phase: str
) -> None:
    assert repaired(plan(error(kind, 5, phase), job=job)) == (kind.upper(), (4,))


@pytest.mark.parametrize("phase", BEHIND)
def test_a_memory_error_behind_the_all_reduce_goes_on_after_its_step(plan: Planner, phase: str) -> None:
    found = plan(error("uce", 6, phase), job={**UCE, "checkpoint_interval": 3})
    assert repaired(found) == ("UCE", (6,))


@pytest.mark.parametrize("phase", BEHIND)
@pytest.mark.parametrize("protection", [("HCCE",), ("UCE", "HCCE"), ("TTP",), ()])
def test_a_communication_error_behind_the_all_reduce_is_refused(
    plan: Planner, phase: str, protection: tuple[str, ...]
) -> None:
    plan.lines = {"faults.0.trigger.phase": 17}
    text = plan.refused(error("hcce", 6, phase), job={"protection": protection, "checkpoint_interval": 3})
    said = f"a communication error arises while the gradients are exchanged, not at {phase}"
    assert f"example.yaml:17:3: {said}" in text
    assert "use one of step.begin, forward, allreduce.enter" in text


OPEN: list[dict[str, Any]] = [
    {"elapsed": "5s"},
    {"log": {"contains": "loss is"}},
    {"step": 5, "elapsed": "5s"},
    {"any": ({"step": 5}, {"elapsed": "5s"})},
    {"all": ({"step": 5}, {"step": 6})},
]


@pytest.mark.parametrize("trigger", OPEN)
@pytest.mark.parametrize(
    ("kind", "protection"), [("uce", ("UCE",)), ("hcce", ("HCCE",)), ("uce", ("TTP",)), ("hcce", ())]
)
def test_an_error_needs_one_barrier_as_its_trigger(
    plan: Planner, trigger: dict[str, Any], kind: str, protection: tuple[str, ...]
) -> None:
    plan.lines = {"faults.0.trigger": 16}
    text = plan.refused(error(kind, trigger), job={"protection": protection})
    assert f"example.yaml:16:3: fault '{kind}-1' is an error that a rank raises while it is held at a barrier" in text
    assert "write step, and phase" in text


def test_an_error_that_waits_for_another_fault_is_refused(plan: Planner) -> None:
    text = plan.refused(error("hcce", 5), error("hcce", {"after": "hcce-1"}), job=HCCE)
    assert "fault 'hcce-2' is an error that a rank raises while it is held at a barrier" in text


@pytest.mark.parametrize("phase", ["step.begin", "optimizer.update", "step.end"])
def test_an_error_in_step_1_is_refused(plan: Planner, phase: str) -> None:
    plan.lines = {"faults.0.trigger.step": 16}
    text = plan.refused(error("uce", 1, phase), job=UCE)
    assert f"example.yaml:16:3: fault 'uce-1' comes at {phase} of step 1" in text
    assert "an error before or at step 1 hangs the job" in text


def test_the_first_step_that_can_be_replayed_is_step_2(plan: Planner) -> None:
    assert repaired(plan(error("uce", 2), job=UCE)) == ("UCE", (1,))
    assert repaired(plan(error("hcce", 2), job=HCCE)) == ("HCCE", (1,))


@pytest.mark.parametrize("phase", BEHIND)
def test_an_error_behind_the_last_all_reduce_is_refused(plan: Planner, phase: str) -> None:
    text = plan.refused(error("uce", 10, phase), job={**UCE, "checkpoint_interval": 5})
    assert f"fault 'uce-1' comes at {phase} of step 10, after the last all-reduce of the job" in text


def test_an_error_in_the_last_step_before_its_all_reduce_is_repaired(plan: Planner) -> None:
    assert repaired(plan(error("uce", 10, "allreduce.enter"), job=UCE)) == ("UCE", (9,))


# Replicas


def test_a_memory_error_is_repaired_while_a_rank_of_every_group_is_sound(plan: Planner) -> None:
    assert repaired(plan(error("uce", 5, ranks=(0, 1)), cluster=PAIRS, job=UCE)) == ("UCE", (4,))


def test_a_whole_replica_group_with_memory_errors_is_refused_unless_nothing_is_expected(plan: Planner) -> None:
    plan.lines = {"faults.0.target": 15}
    fault = error("uce", 5, replica_group=1)
    text = plan.refused(fault, cluster=PAIRS, job=UCE)
    said = "every rank of replica group [1, 3] has a memory error at the same moment"
    assert f"example.yaml:15:3: {said}" in text
    assert "write expect.checkpoint: none if the scenario is to prove that" in text

    found = plan(fault, cluster=PAIRS, job=UCE, expect={"checkpoint": "none", "mechanism": "none"})
    assert repaired(found) == ("none", ())
    assert found.response.budget.total is None
    assert any("the job exits without a checkpoint" in reason for reason in found.explanation.reasons)
    assert said in plan.refused(fault, cluster=PAIRS, job=UCE, expect={"checkpoint": {"step": 4}})


def test_both_ranks_of_a_group_may_be_hit_one_after_the_other(plan: Planner) -> None:
    found = plan(error("uce", 5, rank=1), error("uce", 7, "step.end", rank=3), cluster=PAIRS, job=UCE)
    assert repaired(found) == ("UCE", (4, 7))


@pytest.mark.parametrize("kind", ["uce", "mark"])
def test_nothing_comes_after_a_memory_error_that_ends_the_job(plan: Planner, kind: str) -> None:
    faults = [error(kind, 8, rank=0), error("uce", 5, replica_group=1)]
    text = plan.refused(*faults, cluster=PAIRS, job=UCE, expect={"checkpoint": "none"})
    assert (
        f"fault '{kind}-1' is never reached: after 'uce-2' (example.yaml) at step.begin of step 5 every rank blocks"
        in text
    )


def test_a_communication_error_needs_no_replica_and_may_hit_all_ranks(plan: Planner) -> None:
    alone = {"ranks": 4, "parallel": {"model_parallel": 4}}
    found = plan(error("hcce", 5, "allreduce.enter", ranks=(0, 1, 2, 3)), cluster=alone, job=HCCE)
    assert repaired(found) == ("HCCE", (4,))
    assert "no rank has a replica" in plan.refused(error("hcce", 5), cluster=alone, job=UCE)


def test_the_rank_of_the_controller_is_repaired_like_any_other(plan: Planner) -> None:
    assert repaired(plan(error("uce", 5, rank=0), job=UCE)) == ("UCE", (4,))


# No online mechanism


@pytest.mark.parametrize(
    ("kind", "phase", "step"), [("uce", "forward", 5), ("uce", "step.end", 6), ("hcce", "forward", 5)]
)
def test_without_an_online_mechanism_a_rank_with_an_error_is_lost(
    plan: Planner, kind: str, phase: str, step: int
) -> None:
    found = plan(error(kind, 6, phase))
    death = plan(error("kill", 6, phase))
    assert found.checkpoint is not None
    assert (found.response.mechanism, found.checkpoint, found.resume.resume_step) == ("TTP", death.checkpoint, step + 1)
    assert (found.checkpoint.step, found.response.goes_on, found.response.budget) == (step, (), death.response.budget)
    assert any("so a rank that reports one is lost" in reason for reason in found.explanation.reasons)


def test_the_process_of_a_rank_that_reports_an_error_still_hosts_the_controller(plan: Planner) -> None:
    found = plan(error("uce", 6, rank=0))
    assert found.checkpoint is not None and (found.checkpoint.step, found.checkpoint.savers) == (5, (1,))
    text = plan.refused(error("uce", 6, rank=1), error("kill", 6, rank=0))
    assert "rank 0 hosts the MindIO TFT controller" in text


@pytest.mark.parametrize("kind", ["uce", "hcce"])
def test_errors_on_a_whole_group_leave_nothing_to_save(plan: Planner, kind: str) -> None:
    fault = error(kind, 6, replica_group=0)
    assert "no end-of-life checkpoint is saved" in plan.refused(fault, cluster=PAIRS)
    found = plan(fault, cluster=PAIRS, expect={"checkpoint": "none"})
    assert found.response.mechanism == "none"
    assert any("so a rank that reports one is lost" in reason for reason in found.explanation.reasons)


@pytest.mark.parametrize("kind", ["uce", "hcce"])
def test_without_any_protection_an_error_ends_the_job(plan: Planner, kind: str) -> None:
    assert repaired(plan(error(kind, 6), job={"protection": ()})) == ("none", ())


@pytest.mark.parametrize("protection", [("HCCE",), ("TTP", "HCCE"), ("HCCE", "ARF")])
def test_a_memory_error_with_hcce_and_without_uce_is_refused(plan: Planner, protection: tuple[str, ...]) -> None:
    plan.lines = {"job.protection": 8, "faults.0": 14}
    text = plan.refused(error("uce", 5), job={"protection": protection})
    assert "example.yaml:8:3: rank 1 has a memory error (example.yaml:14), and HCCE is on without UCE" in text
    assert "promises nothing for a memory error without UCE" in text
    assert "add UCE to job.protection" in text


@pytest.mark.parametrize(
    ("kind", "job"), [("uce", {"protection": ("UCE", "ARF")}), ("hcce", {"protection": ("HCCE", "ARF")})]
)
def test_online_repair_comes_before_arf_because_the_agent_prefers_it(
    plan: Planner, kind: str, job: dict[str, Any]
) -> None:
    assert repaired(plan(error(kind, 5), job={**job, "agent": True})) == (kind.upper(), (4,))
    text = plan.refused(error(kind, 5), job=job)
    assert "without job.agent MindSpore itself chooses the last strategy that the SDK offers" in text
    assert "set job.agent: true" in text


# Several faults


def test_two_errors_in_different_steps_are_both_repaired_in_their_order(plan: Planner) -> None:
    found = plan(error("hcce", 8, rank=2), error("hcce", 5, rank=1), job=HCCE)
    assert repaired(found) == ("HCCE", (4, 7))
    assert sum("is replayed" in reason for reason in found.explanation.reasons) == 2


def test_the_next_error_may_come_where_the_first_repair_has_gone_on(plan: Planner) -> None:
    faults = [error("uce", 5, "step.end", rank=1), error("uce", 6, "optimizer.update", rank=2)]
    assert repaired(plan(*faults, job=UCE)) == ("UCE", (5, 6))


@pytest.mark.parametrize(
    ("first", "second", "hint"),
    [
        ((5, "forward"), (5, "forward"), "checkpoint.end of step 5"),
        ((5, "forward"), (5, "optimizer.update"), "checkpoint.end of step 5"),
        ((5, "step.end"), (6, "forward"), "allreduce.enter of step 6"),
    ],
)
def test_two_errors_that_may_meet_are_refused(
    plan: Planner, first: tuple[int, str], second: tuple[int, str], hint: str
) -> None:
    plan.lines = {"faults.0": 12, "faults.1.trigger": 20}
    text = plan.refused(error("uce", *first, rank=1), error("uce", *second, rank=2), job=UCE)
    assert text.startswith(
        f"example.yaml:20:3: fault 'uce-2' at {second[1]} of step {second[0]} is not apart from fault"
    )
    assert "fault 'uce-1' (example.yaml:12)" in text
    assert "not yet supported by this version" in text
    assert f"use a point behind {hint}, or hit the ranks of both with one fault" in text


def test_several_mechanisms_act_one_after_another(plan: Planner) -> None:
    schedule = (error("uce", 4), error("hcce", 6, rank=2), error("kill", 9, rank=3))
    found = plan(*schedule, job={"protection": ("UCE", "HCCE", "TTP")})
    assert [(recovery.mechanism, recovery.faults, recovery.step) for recovery in found.response.recoveries] == [
        ("UCE", ("uce-1",), 3),
        ("HCCE", ("hcce-2",), 5),
        ("TTP", ("kill-3",), 8),
    ]
    assert (found.response.mechanism, found.resume.resume_step) == ("TTP", 9)
    assert found.checkpoint is not None and found.checkpoint.savers == (0,)
    assert [recovery.mechanism for recovery in found.response.goes_on] == ["UCE", "HCCE"]


@pytest.mark.parametrize(
    "faults",
    [
        (error("stop", 5, rank=2), error("hcce", 5)),
        (error("uce", 5), error("kill", {"elapsed": "5s"})),
        (error("uce", 5), error("kill", 5, rank=2)),
    ],
)
def test_a_loss_that_may_meet_an_error_is_refused(plan: Planner, faults: tuple[dict[str, Any], ...]) -> None:
    text = plan.refused(*faults, job={"protection": ("UCE", "HCCE")})
    assert "is not apart from fault" in text


@pytest.mark.parametrize("handler", ["stop", "clean", "repair"])
def test_after_a_repair_that_is_broken_off_the_job_exits_without_a_checkpoint(plan: Planner, handler: str) -> None:
    faults = (error("uce", 5), error("hcce", {"handler": handler, "after": "uce-1"}, rank=2))
    assert "the SDK saves nothing, and the job exits" in plan.refused(*faults, job=UCE)
    found = plan(*faults, job=UCE, expect={"checkpoint": "none"})
    assert [(recovery.mechanism, recovery.step, recovery.succeeds) for recovery in found.response.recoveries] == [
        ("UCE", 4, False)
    ]
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == ("none", None, False)
    assert any("UCE is tried on the memory error of rank 1 and fails" in reason for reason in found.explanation.reasons)


def test_a_save_that_is_broken_off_leaves_no_checkpoint(plan: Planner) -> None:
    faults = (error("kill", 5, rank=2), error("kill", {"handler": "save_ckpt"}, rank=0))
    assert "the save is interrupted" in plan.refused(*faults)
    found = plan(*faults, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == ("none", None, False)
    assert [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries] == [("TTP", False)]


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ((error("kill", {"handler": "repair"}),), "no other fault calls for a recovery"),
        ((error("kill", 5), error("kill", {"handler": "repair"}, rank=2)), "calls handler repair"),
    ],
)
def test_a_handler_that_nobody_calls_is_refused(plan: Planner, faults: tuple[dict[str, Any], ...], said: str) -> None:
    text = plan.refused(*faults)
    assert "is never reached" in text and said in text


def test_a_harmless_fault_may_go_with_an_error(plan: Planner) -> None:
    mark = {"kind": "mark", "target": {"rank": 2}, "trigger": {"after": "uce-1"}}
    assert repaired(plan(error("uce", 5), mark, job=UCE)) == ("UCE", (4,))


# Expectations, budgets, lines


def test_expectations_that_agree_change_nothing(plan: Planner) -> None:
    none = {"mechanism": "UCE", "checkpoint": "none", "resume": "none"}
    assert plan(error("uce", 5), job=UCE, expect=none) == plan(error("uce", 5), job=UCE)


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"mechanism": "TTP"}, "expect.mechanism says TTP, but the plan shows UCE (example.yaml): rank 1 has a memory"),
        ({"mechanism": "HCCE"}, "expect.mechanism says HCCE, but the plan shows UCE"),
        ({"mechanism": "none"}, "expect.mechanism says none, but the plan shows UCE"),
        ({"checkpoint": {"step": 4}}, "expect.checkpoint expects an end-of-life checkpoint, but the plan shows none"),
        ({"resume": {"step": 5}}, "expect.resume names step 5, but the plan shows no resume"),
        ({"recovery": {"phases": {"load": "1s"}}}, "a recovery by UCE has no phase 'load'"),
        ({"recovery": {"phases": {"repare": "1s"}}}, "did you mean 'repair'?"),
    ],
)
def test_what_an_online_repair_cannot_show_is_refused(plan: Planner, expect: dict[str, Any], said: str) -> None:
    assert said in plan.refused(error("uce", 5), job=UCE, expect=expect)


@pytest.mark.parametrize("profile", ["fast", "vendor"])
@pytest.mark.parametrize("mechanism", ["UCE", "HCCE"])
def test_budgets_come_from_the_profile_for_every_phase(plan: Planner, profile: str, mechanism: str) -> None:
    found = plan(error(mechanism.lower(), 5), job={"protection": (mechanism,), "timings": profile})
    assert tuple(found.response.budget.phases) == PHASES[mechanism] == ("detection", "stop", "repair", "first step")
    assert found.response.budget.phases == PROFILES[profile][mechanism].phases
    assert found.response.budget.total == {"fast": 20.0, "vendor": 30.0}[profile]
    assert "first step" in AFTER_RESTART, "the phase of the same name after a restart must not take this one away"


@pytest.mark.parametrize("profile", ["fast", "vendor"])
@pytest.mark.parametrize("mechanism", ["UCE", "HCCE"])
def test_the_total_binds_and_leaves_room_for_every_phase(profile: str, mechanism: str) -> None:
    chosen = PROFILES[profile][mechanism]
    assert max(chosen.phases.values()) < chosen.total <= sum(chosen.phases.values())


def test_written_budgets_replace_those_of_the_profile(plan: Planner) -> None:
    written = {"recovery": {"total": "9s", "phases": {"repair": "2s"}}}
    budget = plan(error("uce", 5), job=UCE, expect=written).response.budget
    assert (budget.total, budget.phases["repair"], budget.phases["stop"]) == (9.0, 2.0, 5.0)


def test_the_repair_has_the_line_that_it_follows_from(plan: Planner) -> None:
    plan.lines = {"job.timings": 6, "faults.0": 10, "faults.0.trigger": 12, "expect.mechanism": 20}
    lines = plan(error("uce", 5), job=UCE, expect={"mechanism": "UCE"}).explanation.lines
    assert (lines["mechanism"], lines["recoveries"], lines["checkpoint"], lines["resume"]) == (20, 12, 12, 12)
    assert (lines["recovery.repair"], lines["recovery.total"]) == (6, 6)


@pytest.mark.parametrize(("kind", "mechanism"), [("uce", "UCE"), ("hcce", "HCCE")])
def test_a_sink_above_one_is_refused(plan: Planner, kind: str, mechanism: str) -> None:
    text = plan.refused(error(kind, 5), job={"protection": (mechanism,), "sink_size": 2})
    assert f"{mechanism} needs sink size 1" in text
