"""Defects that show in the training of a job of PyTorch: batches, losses, and ranks that should hold the same."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Records, recorded

_RESUMED, _LAST = 5, 10


_defect = partial(file_defect, base="live-torch-elastic")


def _batches(rank: int, first: int, shift: int) -> Mutate:
    """Return a mutation: from step ``first`` on the rank trains the batches of ``shift`` steps later."""

    def mutate(run_dir: Path) -> None:
        baseline = Records(run_dir, baseline=True)
        theirs = {step: baseline.digest(rank, step)["batch"] for step in range(1, _LAST + 1)}

        def change(records: Records) -> None:
            for step in range(first, _LAST + 1):
                records.last("digest", rank=rank, step=step)["batch"] = theirs.get(step + shift, "0" * 32)

        recorded(change)(run_dir)

    return mutate


def _shares_swapped(run_dir: Path) -> None:
    """Let ranks 0 and 1 train each other's share of the data, as where a sampler is made with another rank."""
    baseline = Records(run_dir, baseline=True)

    def change(records: Records) -> None:
        for step in range(_RESUMED, _LAST + 1):
            for rank in (0, 1):
                records.last("digest", rank=rank, step=step)["batch"] = baseline.digest(1 - rank, step)["batch"]

    recorded(change)(run_dir)


def _shuffled_anew(records: Records) -> None:
    for rank in range(3):
        for step in range(_RESUMED, _LAST + 1):
            records.last("digest", rank=rank, step=step)["batch"] = f"{rank}{step:031x}"


def _loss(rank: int, first: int, factor: float) -> Mutate:
    """Return a mutation: from step ``first`` on the loss is off by a factor, as a float32 can hold it."""

    def change(records: Records) -> None:
        for step in range(first, _LAST + 1):
            digest = records.last("digest", rank=rank, step=step)
            (rounded,) = struct.unpack("<f", struct.pack("<f", float.fromhex(digest["loss"]) * factor))
            digest["loss"] = float(rounded).hex()

    return recorded(change)


def _parameter(rank: int, step: int, name: str) -> Mutate:
    """Return a mutation: one parameter of a rank has another value after a step."""
    return recorded(lambda records: records.last("digest", rank=rank, step=step)["parameters"].update({name: "0" * 32}))


def _standing_still(records: Records) -> None:
    begun = records.last("initial", rank=1)
    for record in records.all("digest", rank=1, pid=begun["pid"]):
        held = begun["parameters"].items()
        record["parameters"].update({name: value for name, value in held if not name.startswith("optimizer.")})


def _same_wrong_weight(records: Records) -> None:
    for rank in range(3):
        records.last("digest", rank=rank, step=_LAST)["parameters"]["0.weight"] = "1" * 32


DEFECTS = (
    _defect(
        "torch-sampler-from-its-beginning",
        "The sampler of rank 2 begins with its first batch again.",
        _batches(2, _RESUMED, 1 - _RESUMED),
        "rank 2 trained another batch at step 5: the baseline's batch of step 1, so a batch was trained twice",
        check="resume",
    ),
    _defect(
        "torch-sampler-from-its-beginning-on-resume",
        "In the job that is started again the sampler of rank 2 begins with its first batch.",
        _batches(2, _RESUMED, 1 - _RESUMED),
        "rank 2 trained another batch at step 5: the baseline's batch of step 1, so a batch was trained twice",
        base="live-torch-resume",
        check="resume",
    ),
    _defect(
        "torch-batch-skipped",
        "Rank 2 leaves one batch out after the restart.",
        _batches(2, _RESUMED, 1),
        "rank 2 trained another batch at step 5: the baseline's batch of step 6, so a batch was skipped",
        check="resume",
    ),
    _defect(
        "torch-batch-twice",
        "Rank 2 trains one batch twice after the restart.",
        _batches(2, 8, -1),
        "rank 2 trained another batch at step 8: the baseline's batch of step 7, so a batch was trained twice",
        check="resume",
    ),
    _defect(
        "torch-epoch-not-set",
        "The data is shuffled anew after the restart, as where set_epoch gets another epoch.",
        recorded(_shuffled_anew),
        "rank 0 trained another batch at step 5, which the baseline never trained on this rank",
        check="resume",
    ),
    _defect(
        "torch-shares-swapped",
        "Ranks 0 and 1 train each other's share of the data after the restart.",
        _shares_swapped,
        "rank 0 trained another batch at step 5, which the baseline never trained on this rank",
        check="resume",
    ),
    _defect(
        "torch-loss-of-other-noise",
        "From the restart on the loss of rank 0 is that of other dropout masks.",
        _loss(0, _RESUMED, 1.02),
        "every loss equals the fault-free run's, bit for bit",
        "first at rank 0, step 5",
        check="loss",
    ),
    _defect(
        "torch-loss-off-by-a-millionth",
        "From step 8 on the loss of rank 1 is off by one part in a million.",
        _loss(1, 8, 1 + 1e-6),
        "every loss equals the fault-free run's, bit for bit",
        "first at rank 1, step 8",
        check="loss",
    ),
    _defect(
        "torch-loss-not-finite",
        "The loss of rank 2 is not a number in step 9.",
        recorded(lambda records: records.last("digest", rank=2, step=9).update(loss="nan")),
        "rank 2 has loss nan at step 9 of attempt train",
        check="loss",
    ),
    _defect(
        "torch-weights-stand-still",
        "After the restart no weight of rank 1 moves any more.",
        recorded(_standing_still),
        "no weight of rank 1 has changed up to step 10",
        check="loss",
    ),
    _defect(
        "torch-same-wrong-weight",
        "After the last step all ranks hold the same weights, which are not those of the fault-free run.",
        recorded(_same_wrong_weight),
        "weights and optimizer state equal the fault-free run's",
        "first at rank 0, step 10: 1 differ: 0.weight",
        check="loss",
    ),
    _defect(
        "torch-schedule-restarted",
        "The schedule begins anew, so that the second moments differ from the fault-free run's from step 6 on.",
        _parameter(0, 6, "optimizer.exp_avg_sq.1"),
        "weights and optimizer state equal the fault-free run's",
        "first at rank 0, step 6: 1 differ: optimizer.exp_avg_sq.1",
        check="loss",
    ),
    _defect(
        "torch-replicas-differ",
        "A weight of rank 2 differs from that of its replicas after step 8.",
        _parameter(2, 8, "3.weight"),
        "ranks 0 and 2 disagree after step 8 of attempt train: 3.weight",
        check="consistency",
    ),
    _defect(
        "torch-moments-of-replicas-differ",
        "A moment of rank 2 differs from that of its replicas after step 8.",
        _parameter(2, 8, "optimizer.exp_avg.2"),
        "ranks 0 and 2 disagree after step 8 of attempt train: optimizer.exp_avg.2",
        check="consistency",
    ),
)
