"""Defects that show in the training: losses, gradients, weights, and ranks that disagree."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Defect, Mutate, file_defect
from chaos.selftest.records import Records, chain, recorded

LAST = 10


_defect = partial(file_defect, base="ttp", check="loss")


def _float32(number: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    return float(rounded)


def _drifting(*ranks: int) -> Mutate:
    """Return a mutation: from step 8 on the loss is off by one part in a million, as a float32 can hold it."""

    def change(records: Records) -> None:
        for rank in ranks:
            for step in range(8, LAST + 1):
                digest = records.digest(rank, step, "resume")
                digest["loss"] = _float32(float.fromhex(digest["loss"]) * (1 + 1e-6)).hex()

    return recorded(change)


def _last_bit(records: Records) -> None:
    digest = records.digest(2, LAST, "resume")
    (bits,) = struct.unpack("<I", struct.pack("<f", float.fromhex(digest["loss"])))
    (next_value,) = struct.unpack("<f", struct.pack("<I", bits + 1))
    digest["loss"] = float(next_value).hex()


def _digest_of(step: int, rank: int, name: str, attempt: str = "resume") -> Mutate:
    """Return a mutation: one parameter has another value after a step."""

    def change(records: Records) -> None:
        digest = records.digest(rank, step, attempt)["parameters"]
        assert name in digest
        digest[name] = "0" * 32

    return recorded(change)


def _standing_still(records: Records) -> None:
    held = records.first("initial", attempt="resume", rank=1)["parameters"]
    for record in records.all("digest", attempt="resume", rank=1):
        record["parameters"].update({name: value for name, value in held.items() if name.startswith("layer")})


def _schedule_anew(run_dir: Path) -> None:
    """Begin the learning rate's schedule anew after the resume, on every rank."""

    def change(records: Records) -> None:
        for rank in range(4):
            for record in records.all("digest", attempt="resume", rank=rank):
                record["parameters"]["learning_rate"] = f"{record['step'] - 6:032x}"

    recorded(change)(run_dir)


def _gradients(norm: str) -> Mutate:
    return recorded(lambda records: records.digest(1, 8, "resume")["gradients"].update(norm=norm))


def _losses_not_recorded(records: Records) -> None:
    for step in range(6, LAST + 1):
        records.digest(1, step)["loss"] = None


DEFECTS = (
    _defect(
        "loss-drifts-by-a-millionth",
        "From step 8 on the loss of every rank is off by one part in a million.",
        _drifting(0, 1, 2, 3),
        "every loss equals the fault-free run's, bit for bit",
        "first at rank 0, step 8",
    ),
    _defect(
        "loss-right-on-rank-0-only",
        "The losses equal the fault-free run's on rank 0 only.",
        _drifting(1, 2, 3),
        "first at rank 1, step 8",
    ),
    _defect(
        "loss-off-by-last-bit",
        "The last loss of rank 2 is off by its last bit.",
        recorded(_last_bit),
        "first at rank 2, step 10",
    ),
    _defect(
        "loss-not-finite",
        "The loss of rank 2 is NaN in step 9.",
        recorded(lambda records: records.digest(2, 9, "resume").update(loss="nan")),
        "rank 2 has loss nan at step 9 of attempt resume",
    ),
    _defect(
        "gradients-zero",
        "The gradients of rank 1 are zero in step 8.",
        _gradients((0.0).hex()),
        "the norm is 0.0 on rank 1 at step 8",
    ),
    _defect(
        "gradients-not-finite",
        "The gradients of rank 1 are not finite in step 8.",
        _gradients("inf"),
        "the norm is inf on rank 1 at step 8",
    ),
    _defect(
        "weights-stand-still",
        "After the resume no weight of rank 1 moves any more.",
        recorded(_standing_still),
        "no weight of rank 1 has changed up to step 10",
    ),
    _defect(
        "learning-rate-schedule-not-restored",
        "After the resume the learning rate follows its schedule from the start.",
        _schedule_anew,
        "weights and optimizer state equal the fault-free run's",
        "first at rank 0, step 7",
        "learning_rate",
    ),
    _defect(
        "last-weights-differ",
        "One weight of rank 0 has another value after the last step.",
        _digest_of(LAST, 0, "layer5.weight.param"),
        "first at rank 0, step 10: 1 differ: layer5.weight.param",
    ),
    _defect(
        "ranks-disagree",
        "Two replicas hold different weights after the resume.",
        _digest_of(9, 3, "layer2.weight.param"),
        "ranks 1 and 3 disagree after step 9 of attempt resume: layer2.weight.param",
        check="consistency",
    ),
    _defect(
        "ranks-disagree-before-the-fault",
        "Two replicas hold different moments before the fault.",
        _digest_of(3, 0, "moments.layer2.bias.param", "train"),
        "ranks 0 and 2 disagree after step 3 of attempt train: moments.layer2.bias.param",
        check="consistency",
    ),
    _defect(
        "ranks-disagree-after-repair",
        "After the online repair two replicas hold different moments.",
        _digest_of(6, 3, "moments.layer2.bias.param", "train"),
        "ranks 1 and 3 disagree after step 6 of attempt train: moments.layer2.bias.param",
        base="uce",
        check="consistency",
    ),
    _defect(
        "loss-differs-after-replacement",
        "The new process of rank 2 computes another loss in step 7.",
        recorded(lambda records: records.digest(2, 7).update(loss=(0.5).hex())),
        "first at rank 2, step 7",
        base="arf",
    ),
    _defect(
        "loss-differs-after-restart",
        "After the restart of all ranks rank 1 has another loss.",
        recorded(lambda records: records.digest(1, 9).update(loss=(0.5).hex())),
        "first at rank 1, step 9",
        base="rsc",
    ),
    Defect(
        "losses-of-one-replica-recorded-nowhere",
        "Rank 1's losses after the repair are recorded neither here nor in the fault-free run.",
        "files",
        "uce",
        "loss",
        ("no loss of rank 1 at step 6, here or in the baseline",),
        "unknown",
        chain(recorded(_losses_not_recorded), recorded(_losses_not_recorded, baseline=True)),
    ),
)
