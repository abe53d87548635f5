"""A calibration: the measured noise of a job, the limits that follow, and what these limits see and do not see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaos.calibration.advice import cause, remedies
from chaos.calibration.noise import LOSS, MEAN, Noise, Quantity, Recorded, measure
from chaos.calibration.sight import Sight, sight_of
from chaos.calibration.tolerance import USELESS, Tolerance, tolerance_of
from chaos.plan.model import Plan

_CONFIDENCE = 0.95

_WELL_ABOVE = 10
"""The factor by which a limit exceeds noise without being the noise's own size."""

_LARGE = 0.1
"""A difference of fault-free runs from which on it is their noise that leaves no room for a limit."""


@dataclass(frozen=True)
class Calibration:
    """The outcome. ``tolerance`` is None where none is needed, or none helps; ``refusal`` says why none helps."""

    noise: Noise
    tolerance: Tolerance | None
    refusal: str | None
    sight: Sight | None

    def limits(self) -> dict[str, Any]:
        """Return the keys of ``expect.loss``."""
        tolerance = self.tolerance
        assert tolerance is not None
        keys: dict[str, Any] = {}
        if tolerance.loss is not None:
            keys["tolerance"] = tolerance.loss
        if tolerance.mean is not None:
            keys["mean"] = tolerance.mean
        state = {
            pattern: {
                part: limit
                for part in ("norm", "sample")
                if (limit := tolerance.limits.get(Quantity(part, pattern))) is not None
            }
            for pattern in tolerance.patterns()
        }
        return {**keys, **({"state": state} if state else {}), "false_alarm": tolerance.false_alarm}


def calibrate(plan: Plan, runs: Sequence[Recorded], false_alarm: float) -> Calibration:
    """Measure the noise of the runs and state the limits. ``plan`` is the scenario's, with its faults."""
    noise = measure(plan, runs)
    refusal = _refusal(noise)
    if refusal is not None or noise.deterministic:
        return Calibration(noise, None, refusal, None)
    tolerance = tolerance_of(noise, false_alarm)
    if tolerance.is_useless:
        return Calibration(noise, None, "the noise is as large as the values: no limit would tell anything", None)
    sight = sight_of(plan, runs, tolerance)
    if not sight.seen_shifted and _would_see(plan, runs, noise, tolerance):
        refusal = (
            f"{noise.runs} runs are too few to bound the noise: the limits would let every state that is one step off "
            "pass, although these runs are far closer to each other; make more (--runs)"
        )
        return Calibration(noise, None, refusal, None)
    return Calibration(noise, tolerance, None, sight)


def _would_see(plan: Plan, runs: Sequence[Recorded], noise: Noise, tolerance: Tolerance) -> bool:
    """Return whether limits well above the largest differences seen would show most states that are one step off."""
    seen = {quantity: _WELL_ABOVE * max(values) for quantity, values in noise.largest.items()}
    sight = sight_of(plan, runs, replace(tolerance, limits=seen))
    return sight.seen_shifted * 2 > sight.shifted


def _refusal(noise: Noise) -> str | None:
    """Return why no tolerance helps, None where one does."""
    if not noise.comparisons:
        return "not one loss or state was recorded, so nothing can be measured"
    if noise.first is not None and noise.first.what == "start":
        return "a run that begins with other weights than the baseline is not compared with it"
    if noise.first is not None and (noise.first.what == "batch" or noise.batches_differ):
        return "a run that trains other batches than the baseline is not compared with it"
    if noise.unsampled:
        names = ", ".join(sorted(noise.unsampled)[:5])
        return f"these differ and have no sample that could be compared: {names}"
    return None


def sentences(calibration: Calibration) -> Iterator[str]:
    """Yield what was found, in sentences."""
    noise = calibration.noise
    if noise.first is None:
        if not noise.comparisons:
            return
        unseen = 1 - (1 - _CONFIDENCE) ** (1 / (noise.runs - 1))
        yield f"deterministic: {noise.runs} runs are equal bit for bit, {noise.comparisons} values each"
        yield f"with {_CONFIDENCE:.0%} confidence fewer than {unseen:.0%} of runs differ; more --runs show more"
        yield "tolerance 0, the default, is right; nothing has to be written"
        return
    yield f"not deterministic: {cause(noise.first)}"
    for remedy in remedies(noise.first):
        yield f"would make it so: {remedy}"
    if calibration.tolerance is not None:
        yield from _of_tolerance(calibration.tolerance, noise)
    if calibration.sight is not None:
        yield from calibration.sight.sentences()


def _of_tolerance(tolerance: Tolerance, noise: Noise) -> Iterator[str]:
    names = {LOSS: "each loss", MEAN: "the mean loss after the recovery"}
    for quantity, limit in tolerance.limits.items():
        name = names.get(quantity, f"{quantity.part} of {quantity.pattern}")
        seen = max(noise.largest[quantity])
        unjudged = "the noise is too large" if seen > _LARGE else f"{noise.runs} runs are too few"
        judged = f"not judged: {unjudged} for a limit" if limit is None else f"limit {limit:g}"
        if limit is not None and limit >= USELESS:
            judged += " (so only that it is finite is judged)"
        yield f"{name}: {judged}, largest difference seen {seen:.2g}"
    limits = len(tolerance.limits)
    yield (
        f"false alarms: at most {tolerance.false_alarm:.2%} of sound runs exceed one of {limits} limits, each on the "
        f"largest of up to {noise.comparisons} comparisons, if the logarithms of these largest differences are normal"
    )
    yield (
        f"without that assumption: at most {tolerance.bound:.0%} for each limit from {noise.runs} runs; more --runs "
        "bring both closer, and the limits down"
    )
