"""Faults that a rank makes itself are proven by its own record, by the kernel, and by what is missing afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from chaos.base.registry import registry
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.injection.deaths import death_doubts, required_end
from chaos.evidence.injection.triggers import demands
from chaos.evidence.proof import Case, all_of
from chaos.faults.device_errors.proof import raised_doubts
from chaos.faults.rank_acts.proof import hung_doubts
from chaos.faults.rank_acts.proof_slow import slowed_doubts
from chaos.faults.rank_acts.proofs import acted, counted
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.job_effect import ABNORMAL, DEATH, HANG, NONE, UNKNOWN, JobEffect
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import a_plan

TRIGGER: dict[str, Any] = {"step": 5, "phase": "forward"}
SECOND = 1_000_000_000


def planned(kind: str, effect: JobEffect = DEATH, **parameters: Any) -> PlannedFault:
    return PlannedFault("it", kind, (2,), TRIGGER, parameters, None, 9, effect)


def event(name: str, at: float, *, writer: str = "agent", **data: Any) -> Event:
    mono = int(at * SECOND)
    data = {"fault": "it", **data}
    return Event(name, mono, mono, writer, mono, "train", 2, 77, data, f"rank_2.jsonl:{mono}")


INJECTING = event("fault.injecting", 10, writer="harness")
LANDING = event("fault.landed", 12, writer="harness")


def ended(**how: Any) -> Event:
    return event("rank.exit", 11.5, writer="harness", **{"signal": None, "code": None, **how})


def acting(kind: str, at: float = 11, **data: Any) -> Event:
    return event("fault.acting", at, act=kind, **{**TRIGGER, **data})


def doubts(
    fault: PlannedFault, *events: Event, landing: Event = LANDING, evidence: dict[str, object] | None = None
) -> list[str]:
    history = History(tuple(events), ())

    def found() -> Iterator[tuple[str, tuple[str, ...]]]:
        yield from death_doubts(history, fault, INJECTING)
        if effect_of(fault.kind).by_itself:
            case = Case(a_plan(), history, cast(Artifacts, None), fault, landing, INJECTING, evidence or {})
            yield from all_of(acted, *([counted] if fault.kind == "oom" else []))(case)
        yield from hung_doubts(history, fault, demands(TRIGGER), landing, INJECTING)
        yield from slowed_doubts(history, fault, demands(TRIGGER), landing, INJECTING)

    return [text for text, _ in found()]


ENDS = {"segfault": {"signal": 11}, "abort": {"signal": 6}, "exit": {"code": 1}}


@pytest.mark.parametrize("kind", ENDS)
def test_the_kernels_word_and_the_ranks_own_prove_its_end(kind: str) -> None:
    assert doubts(planned(kind), acting(kind), ended(**ENDS[kind])) == []


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize(
    ("how", "doubt"),
    [
        ({"signal": 9}, "ended by SIGKILL, not ended with"),
        ({"code": 0}, "exit code 0, not ended with"),
        ({"code": 3}, "exit code 3, not ended with"),
    ],
)
def test_another_end_is_not_the_planned_one(kind: str, how: dict[str, Any], doubt: str) -> None:
    assert any(doubt in text for text in doubts(planned(kind), acting(kind), ended(**how)))


@pytest.mark.parametrize("kind", ENDS)
def test_an_end_like_it_that_nobody_announced_is_another_one(kind: str) -> None:
    end = ended(**ENDS[kind])
    assert doubts(planned(kind), end) == [f"rank 2's own history does not say that it was about to {kind}"]
    assert "rank 2 did hang" in doubts(planned(kind), acting("hang"), end)
    assert any("was not injected" in text for text in doubts(planned(kind), acting(kind, step=6), end))
    assert any("before it was told to" in text for text in doubts(planned(kind), acting(kind, at=9), end))
    assert doubts(planned(kind), acting(kind)) == ["no exit status of rank 2 (process 77)"]
    early = replace(LANDING, mono=10 * SECOND)
    assert any("landing is recorded before" in text for text in doubts(planned(kind), acting(kind), end, landing=early))


def test_the_code_of_the_scenario_is_the_one_that_counts() -> None:
    fault = planned("exit", code=7)
    assert str(required_end(fault)) == "exit code 7"
    assert doubts(fault, acting("exit"), ended(code=7)) == []
    assert doubts(fault, acting("exit"), ended(code=1))


@pytest.mark.parametrize("kind", sorted(registry("faults").some_names() or ()))
def test_an_end_is_known_of_every_kind_that_ends_its_rank_in_a_known_way(kind: str) -> None:
    loaded = registry("faults").load(kind)
    own = getattr(loaded, "signal", None) is not None or kind == "exit"
    if loaded.effect.ends and own:
        assert required_end(planned(kind)) is not None


def test_a_kill_for_want_of_memory_is_told_by_the_kernels_count() -> None:
    end = (acting("oom"), ended(signal=9))
    assert doubts(planned("oom"), *end, evidence={"oom_kill": 1}) == []
    for count in ({}, {"oom_kill": 0}, {"oom_kill": None}):
        (said,) = doubts(planned("oom"), *end, evidence=dict(count))
        assert said == "the kernel has not counted that it ended rank 2 for want of memory"
    assert doubts(planned("oom"), ended(signal=9), evidence={"oom_kill": 1})


WITNESS = [event("fault.witness", 10.1 + 0.1 * number, count=number) for number in range(3)]


def test_a_hang_is_proven_by_the_record_and_the_silence_of_the_training() -> None:
    hang = planned("hang", HANG)
    assert doubts(hang, acting("hang"), event("handler.enter", 13)) == []
    for name in ("step.end", "step.begin", "digest"):
        assert any(f"went on meanwhile: {name}" in text for text in doubts(hang, acting("hang"), event(name, 13)))
    assert doubts(hang) == ["rank 2's own history does not say that it was about to hang"]
    assert any("so it did not hang" in text for text in doubts(hang, acting("hang"), ended(code=1)))


def test_a_lock_that_is_held_is_proven_by_a_witness_that_falls_silent() -> None:
    held = planned("hold-gil", HANG)
    assert doubts(held, *WITNESS, acting("hold-gil")) == []
    assert any("no witness" in text for text in doubts(held, *WITNESS[:2], acting("hold-gil")))
    went_on = doubts(held, *WITNESS, acting("hold-gil"), event("fault.witness", 11.2, count=4))
    assert any("went on meanwhile: fault.witness" in text for text in went_on)
    assert any("went on meanwhile" in text for text in doubts(held, *WITNESS, acting("hold-gil"), event("x", 13)))


@pytest.mark.parametrize("kind", ["hang", "data-stall"])
def test_a_hang_that_ends_has_lasted_as_long_as_it_should(kind: str) -> None:
    late = planned(kind, NONE, seconds=0.5)
    over = event("fault.ended", 11.6, act=kind)
    assert doubts(late, acting(kind), over, event("step.end", 11.7)) == []
    assert any("has not recorded that it goes on" in text for text in doubts(late, acting(kind)))
    early = doubts(late, acting(kind), replace(over, mono=int(11.3 * SECOND)))
    assert any("waited 0.300 s, not 0.5 s" in text for text in early)
    between = doubts(late, acting(kind), event("step.end", 11.2), over)
    assert any("went on meanwhile: step.end" in text for text in between)


def slowed(at: float, step: int, own: float = 0.1, waited: float = 0.4) -> list[Event]:
    return [
        event("step.end", at, step=step),
        event("fault.slowed", at + 0.5, step=step, own=own, waited=waited),
        event("step.begin", at + 0.6, step=step + 1),
    ]


def test_a_slow_rank_is_proven_by_each_of_its_steps() -> None:
    slow = planned("slow-rank", NONE, factor=5, steps=2)
    both = [acting("slow-rank"), *slowed(12, 5), *slowed(13, 6)]
    assert doubts(slow, *both) == []
    assert doubts(slow, *both[:4]) == ["rank 2 was slow in 1 steps, not in 2"]
    assert doubts(slow, *both[1:]) == ["rank 2's own history does not say that it was about to slow-rank"]
    short = [acting("slow-rank"), *slowed(12, 5), *slowed(13, 6, waited=0.2)]
    assert any("less than factor 5" in text for text in doubts(slow, *short))
    claimed = [acting("slow-rank"), *slowed(12, 5), *slowed(13, 6, waited=0.9)]
    assert doubts(slow, *claimed) == ["rank 2's steps do not show that it waited after step 6"]
    unsaid = [acting("slow-rank"), *slowed(12, 5), *slowed(13, 6, own=None)]  # type: ignore[arg-type]
    assert any("has not recorded how long" in text for text in doubts(slow, *unsaid))


def test_faults_of_other_kinds_are_no_concern() -> None:
    assert doubts(planned("spike", ABNORMAL)) == []


def test_an_exception_is_the_one_that_was_asked_for() -> None:
    fault = planned("exception", UNKNOWN, type="OSError", text="so")
    own = event("fault.raised", 11, type="OSError", text="so", **TRIGGER)

    def said(raised: Event) -> list[str]:
        evidence: dict[str, object] = {"signal": None, "raised": raised.data["text"]}
        found = raised_doubts(History((raised,), ()), fault, demands(TRIGGER), LANDING, evidence, INJECTING)
        return [text for text, _ in found]

    assert said(own) == []
    assert said(replace(own, data={**own.data, "type": "ValueError"})) == [
        "rank 2 raised the type 'ValueError', not 'OSError'"
    ]
    assert said(replace(own, data={**own.data, "text": "other"})) == ["rank 2 raised the text 'other', not 'so'"]
