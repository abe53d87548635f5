"""Thinned digests still cover the steps without which nothing could be compared."""

from __future__ import annotations

from chaos.plan.parts.response import Recovery
from chaos.run.digest_steps import digest_steps
from tests.kit.plans import changed
from tests.kit.runs.good_run import a_plan
from tests.kit.runs.rolled_back_run import HELD, SPIKE, rolled_back_plan


def test_digests_of_every_step_need_no_exception() -> None:
    assert digest_steps(a_plan(), 1) == ()
    assert digest_steps(a_plan(), 0) == ()


def test_the_saved_and_the_last_step_have_digests_although_they_are_thinned_out() -> None:
    plan = a_plan()
    assert plan.checkpoint is not None
    assert digest_steps(plan, 3) == (plan.checkpoint.step, plan.training.last_step)


def test_the_steps_of_online_repairs_have_digests_too() -> None:
    assert digest_steps(
        changed(a_plan(), checkpoint=None, recoveries=tuple(Recovery("UCE", ("uce",), step) for step in (4, 8))), 5
    ) == (4, 8, a_plan().training.last_step)


def test_the_step_of_a_spike_and_the_state_before_have_digests_for_its_proof() -> None:
    assert digest_steps(rolled_back_plan(), 5) == (HELD, SPIKE - 1, SPIKE, a_plan().training.last_step)
