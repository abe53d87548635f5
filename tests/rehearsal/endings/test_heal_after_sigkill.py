"""SIGKILL of the harness at any moment, then ``chaos heal``: nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

import pytest

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.machine.linux.mounts import may_mount, mounts_at
from tests.rehearsal.kit import Chaos, Done, Run, said
from tests.rehearsal.moments import Moment, draw

SEED = int(os.environ.get("CHAOS_TEST_SEED") or random.SystemRandom().randrange(10**6))
"""Seed of all moments. A test that fails shows it; CHAOS_TEST_SEED gives it back."""

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

EVERY_DAY = {"fault": FAULT}
NIGHTLY = {"launch": LAUNCH, "fault": FAULT, "resume": RESUME, "any time": ALL}


def drawn(name: str, history: History, where: Span) -> Moment:
    """The moment of a test, printed with the seed that gives it again."""
    moment = draw(random.Random(f"{SEED} {name}"), history, *where(history))
    print(f"CHAOS_TEST_SEED={SEED}: {moment}")
    return moment


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
        assert [problem for problem in run.history.problems if problem.kind != "torn-last-line"] == []
    assert list(chaos.reports.rglob(".*.new")) == []
    again = chaos.heal()
    assert (again.code, again.json["runs"]) == (0, [])
    for run in chaos.runs():
        if run.history.first("run.end") is None and (run.path / "plan.json").exists():
            assert chaos.analyze(run).code == 2  # a run that was broken off is never a pass


@pytest.mark.parametrize("name", EVERY_DAY)
def test_nothing_is_left_after_sigkill_and_heal(chaos: Chaos, passed: Done, name: str) -> None:
    kill_and_heal(chaos, drawn(name, passed.run.history, EVERY_DAY[name]), "kill-rank")


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("name", NIGHTLY)
def test_nothing_is_left_16_times_out_of_16(chaos: Chaos, passed: Done, name: str, number: int) -> None:
    history = passed.run.history
    kill_and_heal(chaos, drawn(f"{name} {number}", history, NIGHTLY[name]), "kill-rank")


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(4))
def test_nothing_is_left_of_a_baseline_4_times_out_of_4(fresh: Chaos, passed: Done, number: int) -> None:
    history = baseline_of(passed).history
    kill_and_heal(fresh, drawn(f"baseline {number}", history, ALL), "baseline")
    for pointer in fresh.reports.glob(".baselines/*.txt"):  # half a baseline is never taken for one
        assert Run(fresh.reports / pointer.read_text("utf-8")).history.first("run.end") is not None


def baseline_of(done: Done) -> Run:
    """The fault-free run that was made for a run, whole."""
    return Run(done.run.path.parent / done.run.result["baseline"]["run"])


@pytest.mark.nightly
def test_a_suspended_rank_is_healed_after_sigkill(chaos: Chaos) -> None:
    harness = chaos.start_run("suspend-rank.yaml")
    run = harness.run("suspend-rank")
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGKILL)
    harness.end()
    (healed,) = chaos.heal().json["runs"]
    assert any("suspend-rank-1: continued process" in text for text in healed["done"]), healed
    assert run.history.first("fault.healed", fault="suspend") is not None
    assert_healed(chaos)


@pytest.mark.nightly
def test_a_full_disk_is_healed_after_sigkill(chaos: Chaos) -> None:
    """The file system that the harness mounted is taken away, and what the job had written on it is kept."""
    if not may_mount():
        pytest.skip("mounting needs CAP_SYS_ADMIN, which this process has not")
    harness = chaos.start_run("disk-full.yaml")
    run = harness.run("disk-full")
    harness.event(run, "fault.landed", fault="disk-full")
    storage = run.path.resolve() / "job" / "checkpoints"
    harness.signal(signal.SIGKILL)
    harness.end()
    assert len(mounts_at(storage)) == 1
    (healed,) = chaos.heal().json["runs"]
    assert any(f"disk-full-storage: unmounted {storage}" in text for text in healed["done"]), healed
    assert mounts_at(storage) == []
    assert run.history.first("fault.healed", fault="disk-full") is not None
    assert_healed(chaos)


@pytest.mark.nightly
def test_a_run_that_goes_on_is_not_touched(chaos: Chaos) -> None:
    harness = chaos.start_run("kill-rank.yaml")
    run = harness.run()
    harness.event(run, "train.begin", attempt="resume", rank=0)
    before = chaos.heal()
    assert (before.code, [(one["run"], one["outcome"]) for one in before.json["runs"]]) == (
        0,
        [(run.path.name, "live")],
    )
    done = harness.end()
    assert done.code == 0, said([check for check in done.run.result["checks"] if check["verdict"] != "pass"])
