"""The step that is saved follows from the step and phase of the loss, for one loss and for several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner


def kill(rank: int, step: int | None = None, phase: str | None = None, **more: Any) -> dict[str, Any]:
    trigger = {"step": step, "phase": phase, **more.pop("trigger", {})}
    return {"kind": "kill", "target": {"rank": rank}, "trigger": trigger, **more}


BEFORE = ("step.begin", "forward", "allreduce.enter")
BEHIND = ("optimizer.update", "step.end", "checkpoint.begin", "checkpoint.write", "checkpoint.end")


@pytest.mark.parametrize("phase", BEFORE)
def test_a_loss_up_to_the_all_reduce_saves_the_step_before(plan: Planner, phase: str) -> None:
    found = plan(kill(2, 6, phase))
    assert found.checkpoint is not None
    assert (found.response.mechanism, found.checkpoint.step, found.resume.resume_step) == ("TTP", 5, 6)
    assert any(
        "block in the all-reduce of step 6, so step 5 is saved" in reason for reason in found.explanation.reasons
    )


@pytest.mark.parametrize("phase", BEHIND)
def test_a_loss_behind_the_all_reduce_saves_the_step_itself(plan: Planner, phase: str) -> None:
    found = plan(kill(2, 6, phase), job={"checkpoint_interval": 3})
    assert found.checkpoint is not None
    assert (found.response.mechanism, found.checkpoint.step, found.resume.resume_step) == ("TTP", 6, 7)
    assert any(
        "finish step 6 and block in step 7, so step 6 is saved" in reason for reason in found.explanation.reasons
    )


@pytest.mark.parametrize("phase", ["forward", "step.end"])
def test_several_ranks_are_spoken_of_as_several(plan: Planner, phase: str) -> None:
    both = {**kill(1, 6, phase), "target": {"ranks": (1, 3)}}
    assert any(
        reason.startswith(f"Ranks 1,3 are lost at {phase} of step 6") for reason in plan(both).explanation.reasons
    )


def test_the_default_phase_is_the_beginning_of_the_step(plan: Planner) -> None:
    found = plan(kill(2, 6))
    assert found.checkpoint is not None and found.checkpoint.step == 5
    assert found.faults[0].trigger == {"step": 6, "phase": "step.begin"}


def test_a_suspended_rank_is_lost_like_a_killed_one(plan: Planner) -> None:
    found = plan({**kill(2, 6, "forward"), "kind": "stop"})
    assert found.checkpoint is not None
    assert (found.response.mechanism, found.checkpoint.step, found.checkpoint.savers) == ("TTP", 5, (0,))


@pytest.mark.parametrize("mechanism", ["TTP", "UCE"])
def test_ttp_acts_when_it_is_on_or_implied(plan: Planner, mechanism: str) -> None:
    found = plan(kill(2, 6), job={"protection": (mechanism, "TSP", "TRE")})
    assert found.response.mechanism == "TTP"
    assert ("UCE switches TTP on." in found.explanation.reasons) == (mechanism == "UCE")


OPEN = [
    {"elapsed": "5s"},
    {"log": {"contains": "loss is"}},
    {"any": ({"step": 4}, {"elapsed": "5s"})},
    {"step": 4, "elapsed": "5s"},
]


@pytest.mark.parametrize("trigger", OPEN)
def test_an_open_trigger_leaves_the_step_open(plan: Planner, trigger: dict[str, Any]) -> None:
    found = plan({"kind": "kill", "target": {"rank": 1}, "trigger": trigger})
    assert found.checkpoint is not None
    assert (found.response.mechanism, found.checkpoint.step, found.resume.resumes, found.resume.resume_step) == (
        "TTP",
        None,
        True,
        None,
    )
    assert (found.checkpoint.directory, found.checkpoint.files) == (None, {})
    assert found.checkpoint.savers == (0,)


def test_all_of_several_steps_fires_at_the_last_and_any_at_the_first(plan: Planner) -> None:
    steps = ({"step": 3}, {"step": 7, "phase": "step.end"})
    last = plan({"kind": "kill", "target": {"rank": 1}, "trigger": {"all": steps}})
    first = plan({"kind": "kill", "target": {"rank": 1}, "trigger": {"any": steps}})
    assert last.checkpoint is not None and last.checkpoint.step == 7
    assert first.checkpoint is not None and first.checkpoint.step == 2


# Several losses


def test_the_first_of_several_deaths_decides_the_step(plan: Planner) -> None:
    found = plan(kill(3, 6, "allreduce.enter"), kill(1, 6, "step.begin"))
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.checkpoint.savers, found.checkpoint.entitled) == (5, (0,), {0: (0, 2)})


def test_a_death_in_the_next_step_is_still_reached_behind_the_all_reduce(plan: Planner) -> None:
    found = plan(kill(1, 5, "optimizer.update"), kill(2, 6, "allreduce.enter"))
    assert found.checkpoint is not None and found.checkpoint.step == 5


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ((5, "forward"), (5, "optimizer.update")),
        ((5, "forward"), (6, "step.begin")),
        ((5, "step.end"), (6, "optimizer.update")),
    ],
)
def test_a_fault_behind_the_block_is_refused(plan: Planner, first: tuple[int, str], later: tuple[int, str]) -> None:
    plan.lines = {"faults.0": 20, "faults.1": 30, "faults.1.trigger": 33}
    text = plan.refused(kill(1, *first), kill(2, *later))
    assert text.startswith("example.yaml:33:3: fault 'kill-2' is never reached: after 'kill-1' (example.yaml:20)")
    assert "every rank blocks in the all-reduce of step" in text


def test_a_harmless_fault_behind_the_block_is_refused_too(plan: Planner) -> None:
    text = plan.refused(kill(1, 5), {"kind": "mark", "target": {"rank": 2}, "trigger": {"step": 9}})
    assert "fault 'mark-2' is never reached" in text


def test_a_death_after_another_has_landed_changes_only_who_saves(plan: Planner) -> None:
    found = plan(kill(0, 5, "forward"), kill(1, trigger={"after": "kill-1"}), job={"controller": "outside"})
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.checkpoint.savers) == (4, (2,))


def test_a_death_at_an_open_time_beside_an_exact_one_leaves_the_step_open(plan: Planner) -> None:
    found = plan(kill(1, 5), kill(2, trigger={"elapsed": "1s"}))
    assert found.checkpoint is not None and found.checkpoint.step is None
    assert any("one of 1 to 4" in reason for reason in found.explanation.reasons)


def test_a_death_after_a_harmless_fault_leaves_the_step_open_from_there_on(plan: Planner) -> None:
    mark = {"id": "seen", "kind": "mark", "target": {"rank": 2}, "trigger": {"step": 5, "phase": "step.end"}}
    found = plan(kill(1, trigger={"after": "seen"}), mark)
    assert found.checkpoint is not None and found.checkpoint.step is None
    assert any("one of 5 to 9" in reason for reason in found.explanation.reasons)


def test_a_ring_through_any_settles_on_the_alternative_outside_it(plan: Planner) -> None:
    found = plan(
        kill(1, id="a", trigger={"any": ({"step": 5}, {"after": "b"})}),
        {"id": "b", "kind": "mark", "target": {"rank": 1}, "trigger": {"after": "a"}},
    )
    assert [fault.id for fault in found.faults] == ["a", "b"]
    assert any("one of 4 to 9" in reason for reason in found.explanation.reasons)


def test_faults_that_wait_for_each_other_are_refused(plan: Planner) -> None:
    text = plan.refused(kill(1, id="a", trigger={"after": "b"}), kill(2, id="b", trigger={"after": "a"}))
    assert "fault 'a' never comes: it waits for a fault that never lands" in text


def test_a_rank_dies_once(plan: Planner) -> None:
    plan.lines = {"faults.0": 20, "faults.1.target": 31}
    text = plan.refused(kill(2, 5), kill(2, trigger={"after": "kill-1"}))
    assert text.startswith("example.yaml:31:3: fault 'kill-2' cannot hit rank 2: fault 'kill-1' (example.yaml:20)")


def test_a_stopped_rank_reaches_no_later_barrier_but_can_be_killed(plan: Planner) -> None:
    stop = {"kind": "stop", "target": {"rank": 2}, "trigger": {"step": 5}}
    assert "cannot hit rank 2" in plan.refused(stop, kill(2, 5, "forward"))
    assert plan(stop, kill(2, trigger={"after": "stop-1"})).response.mechanism == "TTP"


# Triggers that never fire


def test_a_phase_that_the_job_cannot_observe_is_refused(plan: Planner) -> None:
    plan.traits = type(plan.traits)(frozenset({"step.begin", "step.end"}), "mindformers")
    plan.lines = {"faults.0.trigger.phase": 14}
    text = plan.refused(kill(1, 5, "allreduce.enter"))
    assert text.startswith("example.yaml:14:3: a job of kind 'rehearsal' cannot observe phase allreduce.enter")
    assert "it observes: step.begin, step.end" in text


@pytest.mark.parametrize(("interval", "saves"), [(None, "no periodic checkpoint"), (4, "one every 4 steps")])
def test_a_checkpoint_phase_without_a_checkpoint_is_refused(plan: Planner, interval: int | None, saves: str) -> None:
    text = plan.refused(kill(1, 6, "checkpoint.begin"), job={"checkpoint_interval": interval})
    assert f"checkpoint.begin never comes at step 6: the job saves {saves}" in text


def test_a_step_behind_the_end_is_refused_wherever_it_stands_in_the_trigger(plan: Planner) -> None:
    text = plan.refused(kill(1, trigger={"any": ({"elapsed": "1s"}, {"step": 11})}))
    assert "step 11 never comes: the job trains 10 steps" in text


def test_every_problem_of_a_schedule_is_reported_at_once(plan: Planner) -> None:
    text = plan.refused(
        {"kind": "kil", "target": {"rank": 1}, "trigger": {"step": 2}},
        {"kind": "kill", "target": {"rank": 9}, "trigger": {"step": 12}},
        {"kind": "corrupt", "target": {"rank": 1}, "trigger": {"step": 2}, "parameters": {"at": float("nan")}},
    )
    assert "unknown fault kind 'kil'" in text and "did you mean 'kill'?" in text
    assert "there is no rank 9 of 4" in text
    assert "step 12 never comes" in text
    assert "the effect 'wrong values', which is not yet supported by this version" in text
    assert "parameters must be plain data" in text
