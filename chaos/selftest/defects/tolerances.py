"""Defects of a run that is judged by a tolerance: larger than it, or within it where nothing but equality will do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from itertools import pairwise

from chaos.selftest.defect import Mutate, NothingToMutate, file_defect
from chaos.selftest.records import Record, Records, recorded

RANKS, SAVED, LAST = range(4), 6, 10
REPAIRED = 3
"""The step after which all ranks go on after the repair."""

_DECAY = 0.9
"""The share of its moments that the job's optimizer keeps in a step."""

_A_LITTLE = 1.001
"""A factor that is well within the tolerance."""

_MOMENTS, _WEIGHTS = "adam_m.", "layer"

_defect = partial(file_defect, base="tolerant")


def _scale(event: Record, prefix: str, factor: float) -> None:
    """Scale the parameters whose names begin so: replicas get the same digests, and samples that go with them."""
    names = [name for name in event["parameters"] if name.startswith(prefix)]
    if not names:
        raise NothingToMutate(f"no {prefix}* in {event['event']}")
    for name in names:
        before = event["parameters"][name]
        event["parameters"][name] = blake2b(f"{before}|{factor}".encode(), digest_size=16).hexdigest()
        count, *numbers = event["samples"][name].split()
        event["samples"][name] = " ".join([count, *(repr(float(number) * factor) for number in numbers)])


def _after_resume(change: Callable[[Record], object], ranks: Iterable[int] = RANKS) -> Mutate:
    """Return a mutation of every state that these ranks record after a step of the resumed job."""

    def mutate(records: Records) -> None:
        for rank in ranks:
            for event in records.all("digest", attempt="resume", rank=rank):
                change(event)

    return recorded(mutate)


def _moments_from_zero(event: Record) -> None:
    _scale(event, _MOMENTS, 1 - _DECAY ** (event["step"] - SAVED))


def _without_sample(event: Record) -> None:
    _scale(event, _WEIGHTS, _A_LITTLE)
    event["samples"] = {name: text for name, text in event["samples"].items() if not name.startswith(_WEIGHTS)}


def _not_a_number(event: Record) -> None:
    if event["step"] == LAST:
        _scale(event, _MOMENTS, math.nan)


def _louder(event: Record) -> None:
    event["loss"] = (float.fromhex(event["loss"]) * 1.007).hex()


def _counter_too_low(records: Records) -> None:
    for rank in RANKS:
        for event in records.all("digest", attempt="resume", rank=rank):
            before = event["step"] - 1
            earlier = records.digest(rank, before, "train" if before <= SAVED else "resume")
            if earlier["parameters"]["global_step"] == event["parameters"]["global_step"]:
                raise NothingToMutate("the counter does not count")
            event["late"] = earlier["parameters"]["global_step"], earlier["samples"]["global_step"]
        for event in records.all("digest", attempt="resume", rank=rank):
            event["parameters"]["global_step"], event["samples"]["global_step"] = event.pop("late")


def _random_state_too_early(records: Records) -> None:
    for rank in RANKS:
        for event in records.all("digest", attempt="resume", rank=rank):
            event["parameters"]["random_state"] = records.digest(rank, SAVED)["parameters"]["random_state"]


def _restored_a_little_off(records: Records) -> None:
    for rank in RANKS:
        _scale(records.first("initial", attempt="resume", rank=rank), _WEIGHTS, _A_LITTLE)


def _moments_not_restored(records: Records) -> None:
    for rank in RANKS:
        _scale(records.first("initial", attempt="resume", rank=rank), _MOMENTS, 0.0)


def _repaired_with_the_step_before(records: Records) -> None:
    for rank in RANKS:
        earlier = records.digest(rank, REPAIRED - 1)
        repaired = records.last("initial", attempt="train", rank=rank)
        for part in ("parameters", "samples"):
            counter = repaired[part]["global_step"]
            repaired[part] = {**earlier[part], "global_step": counter}


def _held_a_little_else(records: Records) -> None:
    _scale(records.digest(0, SAVED), _WEIGHTS, _A_LITTLE)


def _batch_skipped(records: Records) -> None:
    for rank in RANKS:
        for event, later in pairwise(records.all("digest", attempt="resume", rank=rank)):
            event["batch"] = later["batch"]


DEFECTS = (
    _defect(
        "tolerant-moments-from-zero",
        "Within a tolerance: after the resume the moments begin from zero and grow again.",
        _after_resume(_moments_from_zero),
        "weights and optimizer state equal the fault-free run's",
        f"first at rank 0, step {SAVED + 1}",
        "of adam_m.",
        check="loss",
    ),
    _defect(
        "tolerant-moments-not-restored",
        "Within a tolerance: the resumed ranks begin with moments of zero.",
        recorded(_moments_not_restored),
        "parameters of rank 0 are not the file's: adam_m.",
        check="resume",
    ),
    _defect(
        "tolerant-state-near-the-file",
        "Within a tolerance: the resumed ranks begin with weights that are off by a thousandth.",
        recorded(_restored_a_little_off),
        "parameters of rank 0 are not the file's: layer",
        check="resume",
    ),
    _defect(
        "tolerant-file-near-the-state",
        "Within a tolerance: rank 0's end-of-life checkpoint is off by a thousandth from what the rank held.",
        recorded(_held_a_little_else),
        "every value equals what the rank held after the saved step",
        "of rank 0 differ",
        check="checkpoint",
    ),
    _defect(
        "tolerant-repair-of-the-step-before",
        "Within a tolerance: the online repair leaves every rank with the state of the step before the common one.",
        recorded(_repaired_with_the_step_before),
        f"after recovery 1 rank 0 held another state than that of step {REPAIRED}",
        check="resume",
    ),
    _defect(
        "tolerant-replica-apart",
        "Within a tolerance: after the resume the weights of rank 3 are off by a thousandth from its replica's.",
        _after_resume(lambda event: _scale(event, _WEIGHTS, _A_LITTLE), ranks=(3,)),
        "ranks 1 and 3 disagree",
        check="consistency",
    ),
    _defect(
        "tolerant-counter-too-low",
        "Within a tolerance: after the resume the optimizer's counter is one too low.",
        recorded(_counter_too_low),
        "global_step must be equal bit for bit",
        check="loss",
    ),
    _defect(
        "tolerant-random-state-stays",
        "Within a tolerance: after the resume the state of the random generator stays as it was saved.",
        recorded(_random_state_too_early),
        "random_state must be equal bit for bit",
        check="loss",
    ),
    _defect(
        "tolerant-state-not-a-number",
        "Within a tolerance: the moments of the last step are not numbers.",
        _after_resume(_not_a_number),
        f"step {LAST}: not finite: adam_m.",
        check="loss",
    ),
    _defect(
        "tolerant-losses-drift",
        "Each loss after the resume is off by less than the tolerance, all in one direction.",
        _after_resume(_louder),
        "the mean loss of rank 0 is off by 0.007",
        check="loss",
    ),
    _defect(
        "tolerant-batch-skipped",
        "Within a tolerance: a batch is skipped after the resume.",
        recorded(_batch_skipped),
        "so a batch was skipped",
        check="resume",
    ),
    _defect(
        "tolerant-sample-missing",
        "Within a tolerance: after the resume the weights of rank 1 differ, and no samples of them are kept.",
        _after_resume(_without_sample, ranks=(1,)),
        "no samples are kept of layer",
        check="loss",
        verdict="unknown",
    ),
)
