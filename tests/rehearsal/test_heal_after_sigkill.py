"""SIGKILL of the harness at any moment, then ``chaos heal``: nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

import pytest

from chaos.history.event import Event
from chaos.history.reader import History
from tests.rehearsal.kit import Chaos, Done, Run
from tests.rehearsal.moments import Moment, draw

SEED = int(os.environ.get("CHAOS_TEST_SEED") or random.SystemRandom().randrange(10**6))
"""Seed of all moments. It is in the name of every moment that fails; CHAOS_TEST_SEED gives it back."""

Span = Callable[[History], tuple[Event, Event]]


def span(begin: str, end: str, **match: dict[str, object]) -> Span:
    """From the first event of one name to the last of another; ``begin`` and ``end`` as keywords narrow them down."""

    def span(history: History) -> tuple[Event, Event]:
        first = history.first(begin, **match.get("first", {}))
        last = history.last(end, **match.get("last", {}))
        assert first is not None and last is not None
        return first, last

    return span


LAUNCH = span("run.start", "barrier.reached")
FAULT = span("barrier.reached", "attempt.end", last={"attempt": "train"})
RESUME = span("attempt.start", "step.end", first={"attempt": "resume"}, last={"attempt": "resume"})
ALL = span("run.start", "hygiene")

EVERY_DAY = {"launch": LAUNCH, "fault": FAULT, "resume": RESUME}
NIGHTLY = [("baseline", ALL)] * 4 + [("fault", FAULT)] * 4 + [("resume", RESUME)] * 3 + [("any", ALL)] * 9


def kill_and_heal(chaos: Chaos, moment: Moment, name: str) -> None:
    """Kill the harness of a run at a moment of the run called ``name``, and heal."""
    harness = chaos.start_run("kill-rank.yaml")
    run = harness.run(name)
    moment.wait(harness, run)
    harness.signal(signal.SIGKILL)
    assert harness.end().code in (-signal.SIGKILL, 0)
    healed = chaos.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert_healed(chaos)


def assert_healed(chaos: Chaos) -> None:
    for run in chaos.runs():
        assert run.left() == []
        assert [one for one in run.history.problems if one.kind != "torn-last-line"] == []
    assert list(chaos.reports.rglob(".*.new")) == []
    again = chaos.heal()
    assert (again.code, again.json["runs"]) == (0, [])
    for run in chaos.runs():
        if run.history.first("run.end") is None and (run.path / "plan.json").exists():
            assert chaos.analyze(run).code == 2  # a run that was broken off is never a pass


@pytest.mark.parametrize("name", EVERY_DAY)
def test_nothing_is_left_after_sigkill_and_heal(chaos: Chaos, passed: Done, name: str) -> None:
    history = passed.run.history
    moment = draw(random.Random(f"{SEED} {name}"), history, *EVERY_DAY[name](history))
    print(f"CHAOS_TEST_SEED={SEED}: {moment}")
    kill_and_heal(chaos, moment, "kill-rank")


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(len(NIGHTLY)))
def test_nothing_is_left_20_times_out_of_20(chaos: Chaos, fresh: Chaos, passed: Done, number: int) -> None:
    name, where = NIGHTLY[number]
    history = baseline_of(passed).history if name == "baseline" else passed.run.history
    moment = draw(random.Random(f"{SEED} {number}"), history, *where(history))
    print(f"CHAOS_TEST_SEED={SEED}, {name}: {moment}")
    if name == "baseline":
        for path in chaos.reports.glob(".baselines/*.txt"):
            path.unlink()
        for run in chaos.runs():
            run.path.rename(run.path.with_name("cached-" + run.path.name))
    kill_and_heal(chaos, moment, "baseline" if name == "baseline" else "kill-rank")


def baseline_of(done: Done) -> Run:
    """The fault-free run that was made for a run, whole."""
    return Run(done.run.path.parent / done.run.result["baseline"]["run"])


def test_a_suspended_rank_is_healed_after_sigkill(chaos: Chaos) -> None:
    harness = chaos.start_run("suspend-rank.yaml")
    run = harness.run("suspend-rank")
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGKILL)
    harness.end()
    (healed,) = chaos.heal().json["runs"]
    assert any("suspend-rank-3: continued process" in text for text in healed["done"]), healed
    assert run.history.first("fault.healed", fault="suspend") is not None
    assert_healed(chaos)
