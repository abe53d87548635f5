"""Part of check ``recovery``: after the last recovery a step takes as long as before the fault, and as in the baseline.

A job may come back and stay slower for good: a rank on a worse device, a protection that copies in every step, a lost
cache. Each step then takes longer, not only the first. So the fastest step after the recovery is compared with the
slower ones before it, and with the fault-free run's: the check fails only where it is slower than both by far more than
noise. A possible effect of a busy machine is not judged, and named as such with the times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.checks.recovery.step_times import Step, of_job, steps, steps_afterwards, steps_of_baseline
from chaos.checks.run.busy_machine import cpu_starvation
from chaos.checks.scope import NotChecked
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan

CHECK = "recovery"
EXPECTED = "a step takes as long after the recovery as before it"

FACTOR = 2.0
"""The fastest step afterwards must take longer than this many of the slower ones before. A process that waits for a
processor for less than a third of the time, or shares a core with others, loses less."""

LEAST_NS = 100_000_000
"""The least difference besides: steps of milliseconds vary by their own length."""

SAMPLES = 4
"""The number of steps required after the recovery, and before the fault or in the fault-free run. The first step of
each training does not count: it warms up."""

MOST_WAITED = 1 / 3
"""A process that waits for a processor for less of the time loses no more than half of its working time."""

_SLOWER = 0.8
"""The share of the earlier steps that are at most as long as the step of reference."""


@dataclass(frozen=True)
class Pace:
    """Nanoseconds of a step, of the rank that took longest. ``begin`` and ``end`` bound the steps afterwards.

    ``rank`` and ``step`` are those of the fastest step afterwards. ``longest`` is the longest time between the ends of
    two steps.
    """

    before: int | None
    baseline: int | None
    after: int
    begin: int
    end: int
    where: tuple[str, ...]
    rank: int | None
    step: int
    longest: int

    @property
    def usual(self) -> int:
        """The reference time of a step: the longer of the known times."""
        return max(usual for usual in (self.before, self.baseline) if usual is not None)

    @property
    def is_slower(self) -> bool:
        """Whether each step afterwards is slower than noise explains."""
        return all(
            self.after > FACTOR * usual and self.after > usual + LEAST_NS
            for usual in (self.before, self.baseline)
            if usual is not None
        )

    def __str__(self) -> str:
        usual = {"before the fault": self.before, "in the fault-free run": self.baseline}
        durations = ", ".join(f"{_ms(duration)} {when}" for when, duration in usual.items() if duration is not None)
        fastest = f"the fastest step takes {_ms(self.after)} after the recovery, the slower steps {durations}"
        return f"{fastest}; at most {_ms(self.longest)} are between the ends of two steps after the recovery"


def judge_pace(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the times of steps; says nothing where they cannot be judged (:func:`pace_left_out`)."""
    measured = _measure(plan, history, artifacts)
    if measured is None or isinstance(measured, str) or (measured.is_slower and _busy(plan, history, measured)):
        return
    usual, after = measured.usual / 1e9, measured.after / 1e9
    data = about(measured.rank, step=measured.step, quantity="step time", expected=usual, seen=after, unit="s")
    if measured.is_slower:
        collector.fail(EXPECTED, str(measured), *measured.where, data=data)
    collector.settle(EXPECTED, str(measured), *measured.where, data=data)


def pace_left_out(plan: Plan, history: History, artifacts: Artifacts) -> Iterator[NotChecked]:
    """Yield that the times of steps were not judged, and why, with the figures as far as there are any."""
    measured = _measure(plan, history, artifacts)
    if isinstance(measured, str):
        yield NotChecked(CHECK, "that steps take as long after the recovery as before it", measured)
    elif measured is not None and measured.is_slower and (why := _busy(plan, history, measured)):
        yield NotChecked(CHECK, "that steps take as long after the recovery as before it", f"{measured}; {why}")


def _measure(plan: Plan, history: History, artifacts: Artifacts) -> Pace | str | None:
    """Return the times of steps, or why they are not judged. None where the plan has no training after a recovery."""
    if not (plan.response.goes_on or plan.resume.resumes):
        return None
    acts = [event.mono for event in history.select("fault.injecting")]
    if not acts:
        return None
    if slowing := slowed(plan):
        return f"fault {slowing[0]} may make steps slower itself"
    before = of_job(step for step in steps(history, TRAIN) if step.end.mono < min(acts))
    after = of_job(steps_afterwards(plan, history, max(acts)))
    baseline = [] if artifacts.baseline is None else of_job(steps_of_baseline(artifacts.baseline))
    if len(after) < SAMPLES or max(len(before), len(baseline)) < SAMPLES:
        counted = (
            f"{len(before)} steps before the fault, {len(baseline)} in the fault-free run, {len(after)} afterwards"
        )
        return f"{counted}: at least {SAMPLES} are needed afterwards, and {SAMPLES} to compare with"
    fastest = min(after, key=lambda step: step.taken)
    return Pace(
        _slower_of(before) if before else None,
        _slower_of(baseline) if baseline else None,
        fastest.taken,
        min(step.begin.mono for step in after),
        max(step.end.mono for step in after),
        (fastest.begin.source, fastest.end.source),
        fastest.begin.rank,
        step_of(fastest.begin),
        max(step.with_gap for step in after),
    )


def slowed(plan: Plan) -> list[str]:
    """Return the faults that may make steps slower themselves."""
    return [fault.id for fault in plan.faults if fault.effect.slows_at_most]


def _busy(plan: Plan, history: History, measured: Pace) -> str:
    """Return why the machine itself may have slowed the steps; empty where it has not."""
    waited = cpu_starvation(plan, history, measured.begin, measured.end)
    return str(waited) if waited is not None and waited.share >= MOST_WAITED else ""


def _slower_of(steps: list[Step]) -> int:
    ordered = sorted(step.taken for step in steps)
    return ordered[min(len(ordered) - 1, int(len(ordered) * _SLOWER))]


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"
