"""The fault-free baseline: the same job without a fault, and the obstacles to a comparison with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from chaos.evidence.checkpoints.parameters import is_flag
from chaos.evidence.facts import TRAIN, by_rank, digests, exit_status, ranks_text, step_of, steps
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

if TYPE_CHECKING:
    from chaos.evidence.artifacts import Artifacts
    from chaos.evidence.logged import Logged

NONE = "none"
"""The plan's ``baseline`` when the user has chosen to run without a baseline."""


@dataclass(frozen=True)
class Baseline:
    """The run beside its baseline."""

    plan: Plan
    history: History
    artifacts: Artifacts

    @property
    def is_requested(self) -> bool:
        """Whether the plan asks for a comparison at all."""
        return self.plan.equivalence.baseline != NONE

    @cached_property
    def digests(self) -> dict[int, dict[int, Event]]:
        """The baseline's digests by rank and step."""
        return digests(self.artifacts.baseline, TRAIN) if self.artifacts.baseline else {}

    @cached_property
    def objection(self) -> tuple[str, tuple[str, ...]] | None:
        """Why a comparison would be ill-posed, and the places that show it. None when it can be made.

        A difference from before the first fault cannot come from the recovery: then the two are not runs of one
        deterministic job, and later differences prove nothing either.
        """
        baseline = self.artifacts.baseline
        if baseline is None:
            return "there is no baseline history", ("baseline/history",)
        faults = baseline.select("fault.landed") + baseline.select("fault.injecting")
        if faults:
            return "the baseline is not fault-free", (at_baseline(faults[0]),)
        if (same := self._of_this_run(baseline)) is not None:
            return "the baseline holds a history of this run", (at_baseline(same),)
        ends = baseline.select("rank.exit", attempt=TRAIN)
        broken = [event for event in ends if event.data.get("code") != 0 or event.data.get("signal") is not None]
        if broken:
            return f"rank {broken[0].rank} of the baseline did not end well: {exit_status(broken[0])}", (
                at_baseline(broken[0]),
            )
        from chaos.evidence.logged import logged  # and numpy, which proofs with this module do without

        logs = logged(self.plan, self.history, self.artifacts)
        ended = steps(baseline, "step.end", TRAIN)
        ended |= {rank: [log.baseline_last] for rank, log in logs.ranks.items() if log.baseline_last}
        last = self.plan.training.last_step
        short = [rank for rank in range(self.plan.layout.ranks) if max(ended.get(rank, [0])) < last]
        if short:
            return f"{ranks_text(short)} of the baseline did not reach step {last}", ("baseline/history",)
        if set(ended) != set(range(self.plan.layout.ranks)):
            return f"the baseline has {len(ended)} ranks, the plan {self.plan.layout.ranks}", ("baseline/history",)
        exited = {event.rank for event in baseline.select("rank.exit", attempt=TRAIN)}
        if silent := [rank for rank in ended if rank not in exited]:
            return f"how {ranks_text(silent)} of the baseline ended is not recorded", ("baseline/history",)
        return (
            _uneven(baseline)
            or self._initial_difference(baseline)
            or self._early_difference()
            or (None if self.plan.equivalence.outdated_by else self._early_logged(logs))
        )

    def _of_this_run(self, baseline: History) -> Event | None:
        """Return the baseline's writer that belongs to this very run: a run compared with itself agrees with itself."""
        runs = {event.data.get("run") for event in self.history.select("writer.start")}
        return next((event for event in baseline.select("writer.start") if event.data.get("run") in runs), None)

    def _initial_difference(self, baseline: History) -> tuple[str, tuple[str, ...]] | None:
        # A job that trains each epoch by itself begins more than once, here and in the baseline.
        theirs = {event.rank: event for event in reversed(baseline.select("initial", attempt=TRAIN))}
        begun: set[int | None] = set()
        for ours in sorted(self.history.select("initial", attempt=TRAIN), key=lambda event: event.mono):
            other = theirs.get(ours.rank)
            # A repaired or replaced rank records its state again: that is no beginning.
            if other is None or ours.rank in begun:
                continue
            begun.add(ours.rank)
            names = differing(ours.data.get("parameters"), other.data.get("parameters"))
            if names:
                text = f"rank {ours.rank} began with another {names[0]} than the baseline: not the same job"
                return text, (ours.source, at_baseline(other))
        return None

    def _early_difference(self) -> tuple[str, tuple[str, ...]] | None:
        acts = self.history.select("fault.injecting")
        first_act = min(acts, key=lambda act: act.mono, default=None)
        if first_act is None:
            return None
        for rank, by_step in digests(self.history, TRAIN).items():
            for step, ours in sorted(by_step.items()):
                other = self.digests.get(rank, {}).get(step)
                if not ours.surely_before(first_act) or other is None:
                    continue
                what = self._difference(ours, other)
                if what:
                    text = f"{what} of rank {rank} at step {step}, before any fault, differs from the baseline"
                    return f"{text}: the job is not deterministic, or not the same", (ours.source, at_baseline(other))
        return None

    def _early_logged(self, logs: Logged) -> tuple[str, tuple[str, ...]] | None:
        for log in logs.ranks.values():
            if log.early is not None:
                ours, theirs = log.early.ours, log.early.theirs
                text = (
                    f"the log of rank {log.rank} has loss {ours} at step {ours.step}, before any fault, the baseline's"
                )
                return f"{text} {theirs}: the job is not deterministic, or not the same", (ours.where, theirs.where)
        return None

    def _difference(self, ours: Event, other: Event) -> str | None:
        if ours.data.get("batch") != other.data.get("batch"):
            return "the batch"
        our_loss, theirs = loss_of(ours), loss_of(other)
        valid, tolerance = self.plan.layout.has_loss(ours.rank or 0), self.plan.equivalence.loss_tolerance
        valid = valid and not self.plan.equivalence.outdated_by  # no noise is too large where none is known
        if valid and our_loss is not None and theirs is not None and not close(our_loss, theirs, tolerance):
            return "the loss"
        names = differing(ours.data.get("parameters"), other.data.get("parameters"))
        if self.plan.equivalence.exact:
            return names[0] if names else None
        from chaos.evidence.tolerances.agreement import agreement  # which most runs do without

        agreed = agreement(self.plan, names, ours, other)
        return agreed.names[0] if agreed.verdict == "fail" else None


def _uneven(baseline: History) -> tuple[str, tuple[str, ...]] | None:
    """Return the place where the baseline lacks one digest of each rank after a step that other ranks have.

    Digests may be thinned out, and then for all ranks alike. A missing record could be compared with nothing.
    """
    recorded = by_rank(baseline, "digest", TRAIN)
    every = {step_of(event) for digest_events in recorded.values() for event in digest_events}
    for rank, digest_events in recorded.items():
        recorded_steps: set[int] = set()
        stateful = any(event.data.get("parameters") for event in digest_events)
        for event in digest_events:
            if step_of(event) in recorded_steps:
                return f"rank {rank} of the baseline has recorded step {step_of(event)} twice", (at_baseline(event),)
            if stateful and not event.data.get("parameters"):
                return f"rank {rank} of the baseline has no state of step {step_of(event)}", (at_baseline(event),)
            recorded_steps.add(step_of(event))
        if missing := sorted(every - recorded_steps):
            text = f"rank {rank} of the baseline has recorded nothing of step {missing[0]}, and others have"
            return text, (at_baseline(digest_events[-1]),)
    return None


def at_baseline(event: Event) -> str:
    """Return the place of a baseline event in the run's directory."""
    return f"baseline/{event.source}"


def loss_of(event: Event) -> float | None:
    """Return the loss in a digest event, None without a loss. Raises ValueError when it is not a float's hex form."""
    text = event.data.get("loss")
    return None if text is None else float.fromhex(str(text))


def close(ours: float, theirs: float, tolerance: float) -> bool:
    """Return whether two values are equal: bit for bit at tolerance 0; otherwise relative to the baseline's value.

    NaN and infinity are never close to anything.
    """
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return False
    if tolerance == 0:
        return ours.hex() == theirs.hex()
    return abs(ours - theirs) <= tolerance * abs(theirs)


def differing(ours: object, theirs: object) -> list[str]:
    """Return the names whose digests differ, or that only one side has, in order. The consistency flag is left out.

    Nothing differs where one side recorded nothing.
    """
    if not (isinstance(ours, dict) and isinstance(theirs, dict) and ours and theirs):
        return []
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name) and not is_flag(name))


def origin(baseline: Baseline, own_rank: int, name: str, ours: Mapping[str, str], step: int) -> str:
    """Return where a wrong value comes from, if the fault-free run has it elsewhere: another step, or another rank.

    The text begins with a space, or is empty.
    """
    for rank, by_step in sorted(baseline.digests.items(), key=lambda item: item[0] != own_rank):
        for other_step, other in sorted(by_step.items(), key=lambda item: abs(item[0] - step)):
            if (other.data.get("parameters") or {}).get(name) == ours.get(name, ""):
                return f" ({name} is rank {rank}'s of step {other_step})"
    return ""
