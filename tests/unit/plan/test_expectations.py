"""A written expectation may sharpen the plan; one that the plan shows to be impossible is an error that names both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.budgets import PROFILES
from chaos.plan.parts.response import AFTER_RESTART, PHASES
from chaos.rehearsal.ttp.timings import PROFILES as TIMINGS

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KILL = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6}}
LATER = {"kind": "kill", "target": {"rank": 1}, "trigger": {"elapsed": "5s"}}
FIRST = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 1}}


def test_expectations_that_agree_change_nothing(plan: Planner, sharded: dict[str, Any]) -> None:
    derived = plan(KILL, cluster=sharded)
    written = plan(
        KILL,
        cluster=sharded,
        expect={"mechanism": "TTP", "checkpoint": {"step": 5}, "resume": {"step": 6}},
    )
    assert written == derived


def test_written_savers_leave_no_choice(plan: Planner, sharded: dict[str, Any]) -> None:
    found = plan(KILL, cluster=sharded, expect={"checkpoint": {"ranks": (5, 7, 2, 4)}})
    assert found.checkpoint is not None
    assert found.checkpoint.savers == (4, 5, 2, 7)
    assert found.checkpoint.entitled == {4: (4,), 5: (5,), 2: (2,), 7: (7,)}
    assert set(found.checkpoint.files) == {4, 5, 2, 7}


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ((0, 1, 2, 3), "names rank 1, but that rank is lost or does not exist"),
        ((0, 5, 4, 3), "names ranks 0 and 4, but both belong to one replica group (survivors [0, 4])"),
        ((0, 5, 2), "names ranks 0,2,5, but no rank of [3, 7], which must save too"),
    ],
)
def test_savers_that_cannot_be_are_refused(
    plan: Planner, sharded: dict[str, Any], ranks: tuple[int, ...], message: str
) -> None:
    plan.lines = {"expect.checkpoint.ranks": 40}
    text = plan.refused(KILL, cluster=sharded, expect={"checkpoint": {"ranks": ranks}})
    assert text.startswith(f"example.yaml:40:3: expect.checkpoint.ranks {message}")


def test_a_written_step_closes_an_open_one(plan: Planner) -> None:
    found = plan(LATER, expect={"checkpoint": {"step": 4}})
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.resume.resume_step) == (4, 5)
    assert found.checkpoint.directory == "ttp_saved_checkpoints-step_4"
    assert "The trigger leaves the step open; the scenario expects step 4." in found.explanation.reasons


def test_a_written_resume_closes_an_open_step_too(plan: Planner) -> None:
    found = plan(LATER, expect={"resume": {"step": 5}})
    assert found.checkpoint is not None and (found.checkpoint.step, found.resume.resume_step) == (4, 5)


CONFLICTS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        KILL,
        {"checkpoint": {"step": 6}},
        "expect.checkpoint.step",
        "expect.checkpoint.step says step 6, but the plan shows step 5: rank 1 is lost at step.begin of step 6",
    ),
    (
        KILL,
        {"resume": {"step": 8}},
        "expect.resume.step",
        "expect.resume.step says a resume at step 8, but the plan shows step 6: rank 1 is lost",
    ),
    (LATER, {"checkpoint": {"step": 0}}, "expect.checkpoint.step", "the plan shows a step from 1 to 9"),
    (LATER, {"checkpoint": {"step": 10}}, "expect.checkpoint.step", "the plan shows a step from 1 to 9"),
    (LATER, {"resume": {"step": 1}}, "expect.resume.step", "the plan shows a step from 2 to 10"),
    (
        LATER,
        {"checkpoint": {"step": 4}, "resume": {"step": 6}},
        "expect.resume.step",
        "expect.resume says step 6, but expect.checkpoint.step says 4",
    ),
    (
        KILL,
        {"checkpoint": "none"},
        "expect.checkpoint",
        "expect.checkpoint says none, but the plan shows an end-of-life checkpoint (example.yaml:10): rank 1 is lost",
    ),
    (
        KILL,
        {"resume": "none"},
        "expect.resume",
        "expect.resume says none, but the job is started again",
    ),
    (
        KILL,
        {"mechanism": "UCE"},
        "expect.mechanism",
        "expect.mechanism says UCE, but the plan shows TTP (example.yaml:10): rank 1 is lost",
    ),
    (KILL, {"mechanism": "none"}, "expect.mechanism", "expect.mechanism says none, but the plan shows TTP"),
]


@pytest.mark.parametrize(("fault", "expect", "path", "message"), CONFLICTS)
def test_an_impossible_expectation_names_itself_and_the_plans_reason(
    plan: Planner, fault: dict[str, Any], expect: dict[str, Any], path: str, message: str
) -> None:
    plan.lines = {path: 50, "faults.0": 10}
    text = plan.refused(fault, expect=expect)
    assert text.startswith("example.yaml:50:3: ")
    assert message in text


NOTHING: list[tuple[dict[str, Any], str]] = [
    ({"mechanism": "TTP"}, "expect.mechanism says TTP, but the plan shows that none acts"),
    ({"checkpoint": {}}, "expect.checkpoint expects an end-of-life checkpoint, but the plan shows none"),
    ({"resume": {"step": 3}}, "expect.resume names step 3, but the plan shows no resume"),
    ({"recovery": {"total": "5s"}}, "a recovery has a budget, but the plan shows that no mechanism acts"),
]


@pytest.mark.parametrize(("expect", "message"), NOTHING)
def test_nothing_can_be_expected_where_no_mechanism_acts(plan: Planner, expect: dict[str, Any], message: str) -> None:
    assert message in plan.refused(expect=expect)
    assert message in plan.refused(KILL, job={"protection": ()}, expect=expect)


def test_expecting_none_is_right_where_no_mechanism_acts(plan: Planner) -> None:
    none = {"mechanism": "none", "checkpoint": "none", "resume": "none"}
    assert plan(expect=none).response.mechanism is None
    assert plan(KILL, job={"protection": ()}, expect=none).response.mechanism == "none"


def test_a_job_that_is_not_resumed_has_no_resume_step(plan: Planner) -> None:
    found = plan(KILL, job={"resume": False}, expect={"resume": "none"})
    assert found.checkpoint is not None and found.checkpoint.step == 5
    assert (found.resume.resumes, found.resume.resume_step) == (False, None)
    text = plan.refused(KILL, job={"resume": False}, expect={"resume": {"step": 6}})
    assert "expect.resume names step 6, but job.resume is false" in text


def test_a_loss_expectation_needs_a_baseline(plan: Planner) -> None:
    assert plan(KILL, expect={"loss": {"tolerance": 0.5}}).equivalence.loss_tolerance == 0.5
    assert plan(KILL).equivalence.loss_tolerance == 0.0
    text = plan.refused(KILL, expect={"loss": {"tolerance": 0.5}}, baseline="none")
    assert "expect.loss needs a baseline to compare with" in text


def test_all_conflicts_are_reported_at_once(plan: Planner) -> None:
    expect = {"mechanism": "ARF", "checkpoint": {"step": 1, "ranks": (1,)}, "recovery": {"phases": {"nap": "1s"}}}
    text = plan.refused(KILL, expect=expect)
    for part in ("expect.mechanism says ARF", "expect.checkpoint.step says step 1", "names rank 1", "no phase 'nap'"):
        assert part in text


# Budgets


@pytest.mark.parametrize("profile", ["fast", "vendor"])
def test_budgets_come_from_the_profile_for_every_phase(plan: Planner, profile: str) -> None:
    found = plan(KILL, job={"timings": profile})
    assert tuple(found.response.budget.phases) == PHASES["TTP"]
    assert found.response.budget.phases == PROFILES[profile]["TTP"].phases
    assert found.response.budget.total == {"fast": 180.0, "vendor": 600.0}[profile]


@pytest.mark.parametrize("profile", ["fast", "vendor"])
@pytest.mark.parametrize("kind", ["stop", "choke"], ids=["suspended", "still before its end"])
def test_the_detection_of_a_silent_rank_may_take_as_long_as_a_heartbeat_counts(
    plan: Planner, kind: str, profile: str
) -> None:
    found = plan({**KILL, "kind": kind}, job={"timings": profile})
    chosen = PROFILES[profile]["TTP"]
    assert found.response.budget.phases == {**chosen.phases, "detection": chosen.silence}
    assert (
        chosen.silence is not None
        and chosen.silence > TIMINGS[profile].lost_after + 2 * TIMINGS[profile].check_interval
    )
    written = {"recovery": {"phases": {"detection": "3s"}}}
    assert plan({**KILL, "kind": "stop"}, expect=written).response.budget.phases["detection"] == 3.0


@pytest.mark.parametrize("profile", ["fast", "vendor"])
def test_where_more_is_lost_than_a_suspended_rank_the_stop_may_take_as_long_as_that_is_asked_in_vain(
    plan: Planner, profile: str
) -> None:
    """Last heartbeats are some milliseconds apart, and a death shows at once: then the next still counts as alive."""
    several = {**KILL, "kind": "stop", "target": {"ranks": [1, 2]}}
    other = {**KILL, "kind": "stop", "target": {"rank": 2}, "id": "other"}
    for faults in ((several,), (KILL, other)):
        asked = plan(*faults, job={"timings": profile}).response.budget.phases["stop"]
        assert asked >= TIMINGS[profile].collection + 2.0
    assert (
        plan({**KILL, "kind": "stop"}, job={"timings": profile}).response.budget.phases["stop"]
        == (PROFILES[profile]["TTP"].phases["stop"])
    )


def test_written_budgets_replace_those_of_the_profile(plan: Planner) -> None:
    found = plan(KILL, expect={"recovery": {"total": "2m", "phases": {"detection": "500ms", "first step": "9s"}}})
    assert found.response.budget.total == 120.0
    assert (found.response.budget.phases["detection"], found.response.budget.phases["first step"]) == (0.5, 9.0)
    assert found.response.budget.phases["save"] == PROFILES["fast"]["TTP"].phases["save"]


def test_a_phase_that_the_mechanism_does_not_have_gets_a_near_miss(plan: Planner) -> None:
    plan.lines = {"expect.recovery.phases.detecton": 61}
    text = plan.refused(KILL, expect={"recovery": {"phases": {"detecton": "1s"}}})
    assert text.startswith("example.yaml:61:3: a recovery by TTP has no phase 'detecton'")
    assert "did you mean 'detection'?" in text


def test_without_a_resume_the_phases_after_it_have_no_budget(plan: Planner) -> None:
    found = plan(KILL, job={"resume": False})
    assert not set(found.response.budget.phases) & set(AFTER_RESTART)
    assert found.response.budget.total == sum(found.response.budget.phases.values())
    text = plan.refused(KILL, job={"resume": False}, expect={"recovery": {"phases": {"load": "1s"}}})
    assert "phase 'load' never comes: the job is not started again" in text


# Lines


def test_every_expectation_has_the_line_that_wrote_it_or_that_it_follows_from(plan: Planner) -> None:
    plan.lines = {
        "job.steps": 5,
        "job.timings": 6,
        "faults.0": 10,
        "faults.0.trigger": 12,
        "expect.resume": 20,
        "expect.resume.step": 21,
        "expect.recovery.phases.save": 25,
    }
    expect = {"resume": {"step": 6}, "recovery": {"phases": {"save": "1s"}}}
    lines = plan(KILL, expect=expect).explanation.lines
    assert lines["mechanism"] == 10
    assert lines["checkpoint"] == lines["checkpoint.ranks"] == 12
    assert (lines["resume"], lines["resume.step"]) == (20, 21)
    assert (lines["recovery.save"], lines["recovery.detection"], lines["recovery.total"]) == (25, 6, 6)
    assert (lines["last_step"], lines["faults.kill-1"]) == (5, 10)


def test_a_scenario_without_a_text_has_no_lines(plan: Planner) -> None:
    assert plan(KILL).explanation.lines == {}
    assert plan.refused(FIRST).startswith("example.yaml: the ranks are lost before step 1")


def test_the_budgets_of_many_ranks_on_one_machine_are_longer_and_the_plan_says_so(plan: Planner) -> None:
    few, many = (plan(KILL, cluster={"ranks": ranks}, job={"timings": "fast"}) for ranks in (16, 128))
    assert few.response.budget.phases == PROFILES["fast"]["TTP"].phases
    assert many.response.budget.phases == {name: 8 * seconds for name, seconds in few.response.budget.phases.items()}
    said = "every budget that the scenario does not write is 8 times that of up to 16"
    assert [said in " ".join(one.explanation.reasons) for one in (few, many)] == [False, True]
    vendor = plan(KILL, cluster={"ranks": 128}, job={"timings": "vendor"})
    assert vendor.response.budget.phases == PROFILES["vendor"]["TTP"].phases
