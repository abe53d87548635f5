"""Every kind of trigger, and every way to combine them."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.plan.parts.fault import PlannedFault
from chaos.plan.schedule import plain_trigger
from chaos.plan.trigger_words import waiting_for
from chaos.run.inject.triggers import Known, armed_points, fires, log_texts
from chaos.scenario.models.fault import Trigger


def fault(trigger: dict[str, Any], *ranks: int) -> PlannedFault:
    """A planned fault with the trigger as the plan writes it."""
    plain = plain_trigger(Trigger.model_validate(trigger, strict=False))
    return PlannedFault("kill", "kill", ranks or (2,), plain, {}, None, 1)


def held(*ranks: int, step: int = 5, phase: str = "step.begin", of: str = "kill") -> Known:
    return Known(held={of: {(step, phase): set(ranks)}})


STEP = {"step": 5}
ELAPSED = {"elapsed": "3s"}
LOG = {"log": {"contains": "loss is"}}
AFTER = {"after": "other"}

CASES = [
    # A step, with the default phase.
    (STEP, Known(), False),
    (STEP, held(2), True),
    (STEP, held(2, phase="step.end"), False),
    (STEP, held(2, step=4), False),
    (STEP, held(1), False),
    (STEP, held(2, of="other"), False),
    ({"step": 5, "phase": "optimizer.update"}, held(2, phase="optimizer.update"), True),
    # Elapsed time.
    (ELAPSED, Known(), False),
    (ELAPSED, Known(elapsed=2.99), False),
    (ELAPSED, Known(elapsed=3.0), True),
    ({"elapsed": "0s"}, Known(), False),
    ({"elapsed": "0s"}, Known(elapsed=0.0), True),
    # A log line.
    (LOG, Known(), False),
    (LOG, Known(logged={("loss is", None)}), True),
    (LOG, Known(logged={("loss is", 1)}), False),
    ({"log": {"contains": "loss is", "rank": 1}}, Known(logged={("loss is", 1)}), True),
    ({"log": {"contains": "loss is", "rank": 0}}, Known(logged={("loss is", 1), ("loss is", None)}), False),
    # Another fault.
    (AFTER, Known(), False),
    (AFTER, Known(landed={"kill"}), False),
    (AFTER, Known(landed={"other"}), True),
    # Several keys in one trigger must all hold.
    ({**STEP, **ELAPSED}, held(2), False),
    ({**STEP, **ELAPSED}, Known(elapsed=9.0), False),
    ({**STEP, **ELAPSED}, Known(elapsed=9.0, held={"kill": {(5, "step.begin"): {2}}}), True),
    # all, any, and nested ones.
    ({"all": [AFTER, LOG]}, Known(landed={"other"}), False),
    ({"all": [AFTER, LOG]}, Known(landed={"other"}, logged={("loss is", None)}), True),
    ({"any": [AFTER, LOG]}, Known(), False),
    ({"any": [AFTER, LOG]}, Known(landed={"other"}), True),
    ({"any": [AFTER, LOG]}, Known(logged={("loss is", None)}), True),
    ({"any": [STEP, AFTER]}, held(2), True),
    ({"any": [STEP, {"step": 7}]}, held(2, step=7), True),
    ({"all": [{"any": [AFTER, LOG]}, ELAPSED]}, Known(landed={"other"}), False),
    ({"all": [{"any": [AFTER, LOG]}, ELAPSED]}, Known(landed={"other"}, elapsed=5.0), True),
    ({"any": [{"all": [AFTER, LOG]}, ELAPSED]}, Known(landed={"other"}, elapsed=1.0), False),
    ({"any": [{"all": [AFTER, LOG]}, ELAPSED]}, Known(elapsed=5.0), True),
    ({**ELAPSED, "any": [AFTER, LOG]}, Known(landed={"other"}), False),
    ({**ELAPSED, "any": [AFTER, LOG]}, Known(landed={"other"}, elapsed=3.5), True),
]


@pytest.mark.parametrize(("trigger", "known", "expected"), CASES)
def test_a_trigger_holds_when_all_it_names_is_known(trigger: dict[str, Any], known: Known, expected: bool) -> None:
    assert fires(fault(trigger), known) is expected


def test_every_rank_of_the_fault_must_be_held() -> None:
    both = fault(STEP, 1, 3)
    assert not fires(both, held(1))
    assert not fires(both, held(3))
    assert fires(both, held(1, 3))


def test_ranks_held_at_different_points_are_not_held_together() -> None:
    either = fault({"any": [STEP, {"step": 7}]}, 1, 3)
    known = Known(held={"kill": {(5, "step.begin"): {1}, (7, "step.begin"): {3}}})
    assert not fires(either, known)


def test_every_point_in_a_trigger_is_armed() -> None:
    trigger = {"any": [STEP, {"all": [{"step": 7, "phase": "forward"}, ELAPSED]}]}
    assert armed_points(fault(trigger)) == [(5, "step.begin"), (7, "forward")]
    assert armed_points(fault(ELAPSED)) == []


def test_every_text_in_a_trigger_is_looked_for() -> None:
    trigger = {"any": [LOG, {"all": [{"log": {"contains": "x", "rank": 3}}, STEP]}]}
    assert log_texts(fault(trigger)) == [("loss is", None), ("x", 3)]


def test_what_a_fault_waits_for_is_said_in_words() -> None:
    trigger = {"any": [{"step": 5, "phase": "step.end"}, {"all": [ELAPSED, LOG, AFTER]}]}
    assert waiting_for(fault(trigger, 1, 2)) == (
        "step 5 step.end of ranks 1-2, 3 s since the first step, a log line with 'loss is', fault other to land"
    )
