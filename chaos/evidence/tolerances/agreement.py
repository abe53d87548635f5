"""Whether two states whose digests differ agree within the plan's tolerance, by the samples beside the digests.

A difference within the limits passes. Without samples of both sides it is unknown. A difference beyond the limits is a
failure where the limits were measured, and unknown where they are only the tolerance of the losses: weights need not
have the noise of losses. Where the limits were measured with another job, each difference is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from chaos.evidence.checkpoints.parameters import is_step_counter
from chaos.evidence.facts import text_list
from chaos.evidence.finding import Verdict
from chaos.evidence.tolerances.samples import EXACT, Sample, difference, read_sample, samples_of
from chaos.history.event import Event
from chaos.plan.model import Plan
from chaos.plan.parts.equivalence import StateTolerance

_ADVICE = "chaos calibrate measures limits for weights and optimizer state"


@dataclass(frozen=True)
class Agreement:
    """The outcome of a comparison.

    ``names`` are the parameters that decide it, ``text`` says why. ``share`` is the largest part of a limit that was
    used up, of the parameter ``nearest``.
    """

    verdict: Verdict
    text: str = ""
    names: tuple[str, ...] = ()
    share: float = 0.0
    nearest: str = ""


@dataclass
class _Sorted:
    """The parameters by the outcome for each: those beyond a limit with the part of it that they need."""

    exact: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    infinite: list[str] = field(default_factory=list)
    beyond: list[tuple[float, str, str]] = field(default_factory=list)
    within: list[tuple[float, str]] = field(default_factory=list)


def limit_of(plan: Plan, name: str) -> StateTolerance | None:
    """Return the limits of a parameter; None where it must be equal bit for bit."""
    stated = plan.equivalence
    if is_step_counter(name):
        return None
    if not stated.state_tolerances:
        tolerance = stated.loss_tolerance
        return StateTolerance("*", tolerance, tolerance) if tolerance else None
    return next((limit for limit in stated.state_tolerances if fnmatchcase(name, limit.pattern)), None)


def agreement(plan: Plan, names: Iterable[str], ours: Event, theirs: Event) -> Agreement:
    """Judge the parameters ``names``, whose digests differ, by the samples of both events."""
    groups = _Sorted()
    for name in names:
        limit = limit_of(plan, name)
        if limit is None or not (_has(ours, name) and _has(theirs, name)):
            groups.exact.append(name)
        else:
            _sort(groups, name, limit, ours, theirs)
    if groups.exact:
        return Agreement("fail", f"{text_list(groups.exact)} must be equal bit for bit", tuple(groups.exact))
    if groups.infinite:
        return Agreement("fail", f"not finite: {text_list(groups.infinite)}", tuple(groups.infinite))
    if why := plan.equivalence.why_outdated:
        doubtful = (*(name for _, name, _ in groups.beyond), *groups.lacking, *(name for _, name in groups.within))
        return Agreement("unknown" if doubtful else "pass", why if doubtful else "", tuple(dict.fromkeys(doubtful)))
    measured = bool(plan.equivalence.state_tolerances)
    if groups.beyond and measured:
        return _beyond("fail", groups)
    if groups.lacking:
        return Agreement("unknown", f"no samples are kept of {text_list(groups.lacking)}", tuple(groups.lacking))
    if groups.beyond:
        return _beyond("unknown", groups, f"; {_ADVICE}")
    share, nearest = max(groups.within, default=(0.0, ""))
    return Agreement("pass", share=share, nearest=nearest)


def _has(event: Event, name: str) -> bool:
    parameters = event.data.get("parameters")
    return isinstance(parameters, dict) and name in parameters


def _sort(groups: _Sorted, name: str, limit: StateTolerance, ours: Event, theirs: Event) -> None:
    texts = [samples_of(event).get(name) for event in (ours, theirs)]
    if EXACT in texts and limit.norm is None and limit.sample is None:
        return  # the scenario leaves it out, and the result says so
    our_sample, their_sample = map(read_sample, texts)
    if EXACT in texts or (our_sample is not None and their_sample is not None and _reshaped(our_sample, their_sample)):
        groups.exact.append(name)
        return
    apart = None if our_sample is None or their_sample is None else difference(our_sample, their_sample)
    if our_sample is None or their_sample is None or apart is None:
        groups.lacking.append(name)
        return
    if their_sample.finite and not our_sample.finite:
        groups.infinite.append(name)  # no noise makes a value infinite, whatever the limits are
        return
    for what, value, most in (("norm", apart.norm, limit.norm), ("sample", apart.sample, limit.sample)):
        if most is None:
            continue
        part = value / most if most else math.inf if value else 0.0
        if value <= most:
            groups.within.append((part, name))
        else:
            groups.beyond.append((part, name, f"the {what} of {name} is off by {value:.3g}, the limit is {most:.3g}"))


def _reshaped(ours: Sample, theirs: Sample) -> bool:
    """Return whether a parameter has another number of values: no noise does that."""
    return ours.count != theirs.count


def _beyond(verdict: Verdict, groups: _Sorted, advice: str = "") -> Agreement:
    ordered = sorted(groups.beyond, reverse=True)
    names = tuple(dict.fromkeys(name for _, name, _ in ordered))
    more = f", and {len(names) - 1} more are off" if len(names) > 1 else ""
    return Agreement(verdict, f"{ordered[0][2]}{more}{advice}", names)
