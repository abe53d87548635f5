"""Faults that a rank makes itself: what they ask for, what follows of them, and where nothing could be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.base.registry import registry
from chaos.faults.registered import fault_kind
from chaos.plan.job_effect import NONE, UNKNOWN
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import EFFECTS

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

PLACE = {"step": 5, "phase": "forward"}
KINDS: frozenset[str] = frozenset(registry("faults").some_names() or ())


def fault(kind: str, trigger: dict[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": 1}, "trigger": trigger or PLACE, "parameters": parameters}


@pytest.fixture
def real(plan: Planner) -> Planner:
    """The planner with the registered kinds' own effects and demands."""
    loaded = {name: fault_kind(name) for name in KINDS}
    plan.traits = JobTraits(
        frozenset(PHASE_ORDER),
        "mindspore",
        storage="checkpoints",
        alters=frozenset({"gradient", "weight", "activation", "batch", "loss"}),
    )
    plan.effects = {**EFFECTS, **{name: kind.effect for name, kind in loaded.items()}}
    plan.parameters = {name: kind.parameters for name, kind in loaded.items() if kind.parameters is not None}
    plan.required_place = {
        name: kind.required_place for name, kind in loaded.items() if kind.required_place is not None
    }
    return plan


@pytest.mark.parametrize("kind", ["segfault", "abort", "exit"])
def test_a_rank_that_ends_itself_is_lost_like_one_that_is_killed(real: Planner, kind: str) -> None:
    ours, killed = real(fault(kind)), real(fault("kill"))
    assert (ours.response.mechanism, ours.checkpoint, ours.resume.resume_step) == (
        killed.response.mechanism,
        killed.checkpoint,
        5,
    )


@pytest.mark.parametrize("kind", ["exception", "link-error"])
def test_an_error_that_nothing_repairs_takes_its_rank(real: Planner, kind: str) -> None:
    found = real(fault(kind), job={"protection": ("TTP", "UCE", "HCCE")})
    assert (found.response.mechanism, found.resume.resume_step, found.faults[0].effect) == ("TTP", 5, UNKNOWN)
    assert "reports any other to the SDK as unknown" in " ".join(found.explanation.reasons)
    again = real(fault(kind), job={"protection": ("TTP", "UCE", "HCCE", "ARF"), "agent": True})
    assert [(recovery.mechanism, recovery.restarted) for recovery in again.response.recoveries] == [("ARF", (1,))]


def test_a_suspect_remote_is_repaired_like_a_failed_communication(real: Planner) -> None:
    found = real(fault("suspect-remote"), job={"protection": ("TTP", "HCCE")})
    assert [(recovery.mechanism, recovery.step, recovery.copied) for recovery in found.response.recoveries] == [
        ("HCCE", 4, ())
    ]
    assert "is error 507057" in " ".join(found.explanation.reasons)
    late = fault("suspect-remote", {"step": 5, "phase": "step.end"})
    assert "while the gradients are exchanged" in real.refused(late, job={"protection": ("HCCE",)})


@pytest.mark.parametrize("kind", ["hang", "hold-gil"])
def test_a_rank_that_hangs_is_found_by_the_collectives_timeout_alone(real: Planner, kind: str) -> None:
    restarted = {"protection": ("RSC",), "agent": True, "checkpoint_interval": 2, "hccl": {}}
    found = real(fault(kind), job=restarted)
    assert [(recovery.mechanism, recovery.step) for recovery in found.response.recoveries] == [("RSC", 4)]
    assert real(fault(kind), job={"protection": (), "hccl": {}}).response.mechanism == "none"
    assert "without job.hccl the timeout of" in real.refused(fault(kind), job={"protection": ()})
    assert "depends on the order in which the others" in real.refused(fault(kind), job={"hccl": {}})


def test_a_hang_that_ends_calls_nobody(real: Planner) -> None:
    found = real(fault("hang", seconds=2), expect={"mechanism": "none"})
    assert (found.response.mechanism, found.faults[0].effect) == (None, NONE)
    assert "may be given up by the others" in real.refused(fault("hang", seconds=21))
    hccl = {"hccl": {"exec_timeout": 100.0, "time_scale": 0.01}}
    assert "0.5 s is the limit" in real.refused(fault("hang", seconds=0.6), job=hccl)


def test_a_lock_that_is_held_stops_the_stand_ins_heartbeat_and_not_the_vendors(real: Planner) -> None:
    assert "with TTP nothing can be judged" in real.refused(fault("hold-gil", seconds=1))
    assert real(fault("hold-gil", seconds=1), job={"protection": ()}).response.mechanism is None


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (fault("exit", code=256), "code of a exit is a whole number from 0 to 255"),
        (fault("exit", code="x"), "code of a exit is a whole number from 0 to 255"),
        (fault("exit", status=1), "a exit has no parameter 'status'"),
        (fault("segfault", address=0), "a segfault has no parameter 'address'"),
        (fault("exception", type="SystemExit"), "type of a exception is one of"),
        (fault("exception", text="UCEError"), "takes an error with 'UCEError' in its text for another one"),
        (fault("exit", code=0), None),
        (fault("hang", seconds=0), "seconds of a hang is a number from 0.001"),
        (fault("data-stall", {"step": 5}), "does not say seconds"),
        (fault("data-stall", PLACE, seconds=1), "data-stall cannot be made at forward of a step"),
        (fault("slow-rank", {"step": 5}, factor=1), "factor of a slow-rank is a number from 1.01"),
        (fault("slow-rank", {"step": 9}, factor=2, steps=2), "must be one that shows the others waiting"),
        (fault("segfault", {"elapsed": 1.0}), "made by the rank itself while it is held at a barrier"),
        (fault("segfault", {"any": ({"step": 5}, {"elapsed": 1.0})}), "and no alternatives"),
        (fault("hang", {"handler": "save_ckpt"}), "hang cannot be made at a handler"),
    ],
)
def test_what_a_kind_cannot_have_is_refused_by_name(real: Planner, wrong: dict[str, Any], text: str | None) -> None:
    if text is None:
        assert real(wrong).response.mechanism == "TTP"
    else:
        assert text in real.refused(wrong)


def test_an_end_with_0_is_refused_where_nobody_would_notice(real: Planner) -> None:
    quiet = fault("exit", code=0)
    agent = {"protection": ("TTP", "ARF"), "agent": True}
    assert "which the cluster's agent takes for the end of its training" in real.refused(quiet, job=agent)
    assert "which everybody takes" in real.refused(quiet, job={"protection": ()})


@pytest.mark.parametrize(
    ("place", "where", "losses"),
    [("allreduce.enter", "gradient", 5), ("step.begin", "weight", 4), ("forward", "activation", 4)],
)
def test_a_flipped_bit_is_promised_to_nobody_and_compared_up_to_it(
    real: Planner, place: str, where: str, losses: int
) -> None:
    found = real(fault("flip-bit", {"step": 5, "phase": place}, where=where), expect={"mechanism": "none"})
    assert found.equivalence.comparable is not None
    assert (found.response.mechanism, found.equivalence.comparable.until) == (
        None,
        4,
    )  # the state of before it is the fault-free run's
    assert (found.equivalence.comparable.losses_until, found.equivalence.comparable.finite_until) == (losses, losses)
    assert "No mechanism is promised to detect it" in " ".join(found.explanation.reasons)


def test_another_batch_leaves_every_value_finite(real: Planner) -> None:
    found = real(fault("wrong-batch"), expect={"mechanism": "none"})
    assert found.equivalence.comparable is not None
    assert (found.equivalence.comparable.until, found.equivalence.comparable.losses_until) == (4, 4)
    assert (found.equivalence.comparable.finite_until, found.equivalence.comparable.finite_gradients_until) == (
        None,
        None,
    )


@pytest.mark.parametrize("kind", ["flip-bit", "wrong-batch", "nonfinite-loss"])
def test_a_scenario_has_to_say_that_it_wants_nobody_to_notice(real: Planner, kind: str) -> None:
    place = {"step": 5, "phase": "allreduce.enter" if kind == "flip-bit" else "forward"}
    text = real.refused(fault(kind, place))
    assert "a pass means just that" in text
    assert "write expect.mechanism: none" in text
    none = {"mechanism": "none"}
    assert "only the fault-free run shows" in real.refused(fault(kind, place), expect=none, baseline="none")
    assert "comes in step 1" in real.refused(fault(kind, {**place, "step": 1}), expect=none)
    watched = {"tre": {"threshold": 5.0}, "protection": ("TRE",), "checkpoint_interval": 2}
    assert "over the threshold is not planned" in real.refused(fault(kind, place), job=watched, expect=none)
    real.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints")
    assert "nothing can change a" in real.refused(fault(kind, place), expect=none)


def test_a_bit_is_flipped_where_its_value_is_used(real: Planner) -> None:
    wrong = fault("flip-bit", {"step": 5, "phase": "forward"}, where="weight")
    assert "a weight is changed at step.begin of a step" in real.refused(wrong, expect={"mechanism": "none"})


def test_after_a_flipped_weight_no_recovery_is_planned(real: Planner) -> None:
    flip = fault("flip-bit", {"step": 4}, where="weight")
    assert "do not hold the same weights" in real.refused(flip, fault("kill", {"step": 7}))
    gradient = fault("flip-bit", {"step": 4, "phase": "allreduce.enter"})
    assert real(gradient, fault("kill", {"step": 7})).response.mechanism == "TTP"
