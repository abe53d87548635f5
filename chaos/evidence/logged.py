"""The losses and steps in the ranks' own logs, for the ranks without an agent's record.

An agent's record is exact and says more, so it wins wherever there is one. MindFormers' own training loop (PyNative)
calls no hooks; there its log is the only evidence. The logs of a thousand ranks are read once, rank by rank, and only
the checks' findings are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.periodic import resumed_from
from chaos.evidence.facts import RESUME, TRAIN
from chaos.evidence.printed import Course, Numbers, Printed, Track, course, unequal, without
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.history.reader import History
from chaos.plan.model import Plan

_STEP_EVENTS = ("step.begin", "step.end", "digest")
_SOME = 8
"""Most lines that are kept for the same observation; the others are counted."""

_MOST_STEPS = 10_000_000  # a table of all steps has to fit into memory
_MOST_RETURNS = 100  # no plan has so many recoveries


@dataclass(frozen=True)
class Launch:
    """The steps of a rank in one launch. ``returns`` are neighbouring lines of which the second is of no later step."""

    count: int
    first: Printed | None
    last: Printed | None
    returns: tuple[tuple[Printed, Printed], ...]


@dataclass(frozen=True)
class Difference:
    """A loss beside the loss of the fault-free run, or of another rank, at the same step."""

    ours: Printed
    theirs: Printed


@dataclass(frozen=True)
class RankLog:
    """The result of a rank's logs.

    ``places`` are the fewest digits after the point, here or in the fault-free run. ``missing`` are steps that count
    and have no line with a loss (``missing_count`` of them). ``early`` and ``late`` are the first of the ``compared``
    losses that differ from the baseline's, before and after the first fault could have an effect; ``baseline_last`` is
    the baseline's last step.
    """

    rank: int
    launches: dict[str, Launch]
    places: int
    infinite: tuple[Printed, ...]
    missing: tuple[int, ...]
    missing_count: int
    compared: int = 0
    early: Difference | None = None
    late: Difference | None = None
    baseline_last: int = 0


@dataclass
class Logged:
    """The logs of all ranks that are judged by them. ``apart`` are ranks of one replica group that disagree.

    ``unseen`` are ranks without evidence of their steps, neither record nor log, here or in the baseline.
    """

    ranks: dict[int, RankLog] = field(default_factory=dict)
    unseen: frozenset[int] = frozenset()
    agreeing: int = 0
    apart: list[tuple[int, int, Difference]] = field(default_factory=list)

    @property
    def precision(self) -> str:
        """The precision of this evidence, for findings."""
        places = sorted({log.places for log in self.ranks.values() if log.places >= 0})
        digits = f"{places[0]} digits after the point" if places else "what they print"
        return f"by the ranks' logs, exact to {digits}"


def logged(plan: Plan, history: History, artifacts: Artifacts) -> Logged:
    """Read the logs of every rank without a record of steps, here or in the baseline. Done once for a run."""
    if artifacts.logged is None:
        artifacts.logged = _go_through(plan, history, artifacts)
    return artifacts.logged


def _go_through(plan: Plan, history: History, artifacts: Artifacts) -> Logged:
    unrecorded = _unrecorded(plan, history, artifacts)
    silent = {rank for rank in unrecorded if artifacts.worker_logs(TRAIN, rank)}
    result = Logged(unseen=frozenset(unrecorded))
    if not silent:
        return result
    if plan.training.last_step > _MOST_STEPS:
        raise ValueError(f"a training of {plan.training.last_step} steps is too long to be judged by logs")
    saved = resumed_from(plan, history, artifacts) if plan.resume.resumes else None
    killed = {
        event.rank for event in history.select("rank.exit", attempt=TRAIN) if event.data.get("signal") is not None
    }
    for group in plan.layout.replica_groups:
        reference: _Both | None = None
        for rank in group:
            both = _read(plan, artifacts, rank, saved) if rank in silent else None
            if both is None:
                continue
            result.ranks[rank] = _summary(plan, rank, both, saved, rank in killed)
            if reference is None:
                reference = both
            elif plan.layout.has_loss(rank):
                _compare(plan, result, reference, both, saved)
    result.unseen = frozenset(unrecorded - result.ranks.keys())
    return result


def _unrecorded(plan: Plan, history: History, artifacts: Artifacts) -> set[int]:
    """Return the ranks whose records have no step."""
    records = [history] if artifacts.baseline is None else [history, artifacts.baseline]
    recorded_ranks = {event.rank for record in records for name in _STEP_EVENTS for event in record.select(name)}
    return {rank for rank in range(plan.layout.ranks) if rank not in recorded_ranks}


@dataclass(frozen=True)
class _Both:
    """A rank's tracks by launch, its training that counts, and the fault-free run's (None: there is none)."""

    rank: int
    tracks: dict[str, Track]
    course: Course
    baseline: Course | None


def _read(plan: Plan, artifacts: Artifacts, rank: int, saved: int | None) -> _Both | None:
    logs = {name: artifacts.losses(name, rank) for name in ((TRAIN, RESUME) if plan.resume.resumes else (TRAIN,))}
    tracks = {name: Track(parts) for name, parts in logs.items()}
    if not any(map(len, tracks.values())):
        return None
    trained = tracks[TRAIN]
    counts = course(trained, plan.training.last_step if saved is None else min(saved, plan.training.last_step))
    rows = np.full(plan.training.last_step + 1, -1, np.int64)
    rows[: len(counts.rows)] = counts.rows
    whole = trained
    if plan.resume.resumes:
        again = tracks[RESUME]
        whole = Track([*logs[TRAIN], *logs[RESUME]])
        later = course(again, plan.training.last_step).rows
        rows = np.where(later >= 0, later + len(trained), rows)
    baseline = Track(artifacts.baseline_losses(rank))
    return _Both(
        rank, tracks, Course(whole, rows), course(baseline, plan.training.last_step) if len(baseline) else None
    )


def _summary(plan: Plan, rank: int, both: _Both, saved: int | None, killed: bool) -> RankLog:
    valid = plan.layout.has_loss(rank)
    infinite = [track.at(row) for track in both.tracks.values() for row in track.infinite()[:_SOME] if valid]
    missing = _missing(plan, both, saved, killed)
    compared, early, late = 0, None, None
    if both.baseline is not None and valid:
        comparable = plan.equivalence.comparable
        until = plan.training.last_step if comparable is None else comparable.losses_until
        tolerance = 0.0 if plan.equivalence.outdated_by else plan.equivalence.loss_tolerance
        compared, differing = unequal(both.course, both.baseline, tolerance)
        differing = differing[differing <= until]
        before = _before(plan, saved)
        early = next(_differences(both, differing[differing <= before]), None)
        late = next(_differences(both, differing[differing > before]), None)
    tracks = [*both.tracks.values(), *([both.baseline.track] if both.baseline is not None else [])]
    places = [track.places[track.places >= 0] for track in tracks]
    return RankLog(
        rank,
        {name: _launch(track) for name, track in both.tracks.items()},
        min((int(part.min()) for part in places if len(part)), default=-1),
        tuple(infinite[:_SOME]),
        tuple(missing[:_SOME].tolist()),
        len(missing),
        compared,
        early,
        late,
        int(both.baseline.steps().max(initial=0)) if both.baseline is not None else 0,
    )


def _launch(track: Track) -> Launch:
    if not len(track):
        return Launch(0, None, None, ())
    returns = tuple((track.at(row - 1), track.at(row)) for row in track.returns()[:_MOST_RETURNS])
    return Launch(len(track), track.at(0), track.at(len(track) - 1), returns)


def _differences(both: _Both, steps: Numbers) -> Iterator[Difference]:
    assert both.baseline is not None
    for step in steps.tolist():
        yield Difference(both.course.at(step), both.baseline.at(step))


def _before(plan: Plan, saved: int | None) -> int:
    """Return the last step that was trained before any fault could have an effect; 0 where there is no fault."""
    if not plan.faults:
        return 0
    steps = [recovery.step for recovery in plan.response.goes_on if recovery.step is not None] + (
        [] if saved is None else [saved]
    )
    if steps:
        return min(steps)
    if plan.response.mechanism == "none":
        return plan.training.last_step  # nothing is trained after the fault
    return min(int(fault.trigger.get("step") or 1) for fault in plan.faults) - 1


def _missing(plan: Plan, both: _Both, saved: int | None, killed: bool) -> Numbers:
    """Return the steps that count and have no line: steps of the fault-free run, or all where there is none."""
    unprinted = np.flatnonzero(both.course.rows[1:] < 0) + 1
    missing = unprinted if both.baseline is None else without(both.course, both.baseline)
    if plan.equivalence.comparable is not None:
        missing = missing[missing <= plan.equivalence.comparable.losses_until]
    if not (plan.resume.resumes or reaches_the_end(plan)):
        missing = missing[missing <= both.course.steps().max(initial=0)]  # a fault has ended the job there
    if killed and saved is not None:
        missing = missing[missing != saved]  # it may have been killed before it printed the step
    return missing


def _compare(plan: Plan, result: Logged, reference: _Both, both: _Both, saved: int | None) -> None:
    """Compare the ranks of a replica group: where they print the same without a fault, they must with one."""
    compared, apart = unequal(both.course, reference.course, 0.0)
    if both.baseline is not None and reference.baseline is not None:
        alike, differ = unequal(both.baseline, reference.baseline, 0.0)
    else:
        alike = int(np.count_nonzero(both.course.steps() <= _before(plan, saved)))
        differ = apart[apart <= _before(plan, saved)]
    if not alike or len(differ):
        return
    result.agreeing += compared - len(apart)
    if len(apart):
        step = int(apart[0])
        difference = Difference(both.course.at(step), reference.course.at(step))
        result.apart.append((both.rank, reference.rank, difference))
