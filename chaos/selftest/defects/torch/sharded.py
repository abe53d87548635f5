"""Defects of jobs of PyTorch that hold shards: stale shards, mixed saves, lost moments, copies that differ."""

from __future__ import annotations

from functools import partial

from chaos.selftest.dcp_file import dcp_stored
from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import copied, removed
from chaos.selftest.records import Record, Records, chain, recorded
from chaos.selftest.torch_file import MOMENTS, STATE, TorchFile, slot, torch_stored

_FSDP, _HSDP, _ZERO = "live-torch-fsdp", "live-torch-hsdp", "live-torch-zero"
_NEWEST, _LOADED, _OLDER = "step-10", "step-4", "step-8"
_MANY = 16
"""Values of the smallest weight's shard: biases have fewer."""

_checkpoint = partial(file_defect, check="checkpoint")
_consistency = partial(file_defect, check="consistency")


def _replaced(target: str, source: str) -> Mutate:
    """Return a mutation that puts a file of the checkpoints in place of another."""
    place = "job/checkpoints"
    return chain(removed(f"{place}/{target}"), copied(f"{place}/{source}", f"{place}/{target}"))


def _part(step: str, rank: int) -> str:
    return f"{step}/__{rank}_0.distcp"


def _zero_squares(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return zeros for second moments: values of a weight of which none is below zero."""
    return (0.0,) * len(values) if len(values) >= _MANY and min(values) >= 0 < max(values) else values


def _zero_of_older(run_dir_file: str, older: str, numbers: tuple[int, ...]) -> Mutate:
    def change(file: TorchFile) -> None:
        file.take(numbers, TorchFile(file.path.with_name(older)))

    return torch_stored(run_dir_file, change)


def _new_digests(records: Records, rank: int) -> list[Record]:
    """Return the states of a rank after the restart, the one before its first step among them."""
    pid = records.last("rank.found", rank=rank)["pid"]
    return [record for name in ("initial", "digest") for record in records.all(name, rank=rank, pid=pid)]


def _differs(*names: str, rank: int) -> Mutate:
    """Return a mutation: after the restart the rank holds other values than the rank with the same shards."""

    def change(records: Records) -> None:
        for record in _new_digests(records, rank):
            record["parameters"].update(dict.fromkeys(names, "0" * 32))

    return recorded(change)


def _held_by(holders: dict[int, list[int]]) -> Mutate:
    """Return a mutation: the ranks record other holders of their shards."""

    def change(records: Records) -> None:
        for event in records.all("state.sharded"):
            event["holders"] = holders[event["rank"]]

    return recorded(change)


DEFECTS = (
    _checkpoint(
        "torch-shard-stale",
        "The file of rank 1 in the directory of step 10 is that of step 8, as after a copy that failed.",
        _replaced(_part(_NEWEST, 1), _part(_OLDER, 1)),
        "parameters in rank 1's file of step 10 differ: ",
        base=_FSDP,
    ),
    _checkpoint(
        "torch-shards-of-an-older-save",
        "The directory of step 10 holds the files of step 8 of both ranks.",
        chain(*(_replaced(_part(_NEWEST, rank), _part(_OLDER, rank)) for rank in (0, 1))),
        "rank 0's file holds step 8, and by its record the rank has saved step 10",
        base=_FSDP,
    ),
    _checkpoint(
        "torch-shard-missing",
        "The file of rank 1 is not in the directory of step 10.",
        removed(f"job/checkpoints/{_part(_NEWEST, 1)}"),
        "rank 0's file is damaged: ",
        base=_FSDP,
    ),
    _checkpoint(
        "torch-metadata-missing",
        "The directory of step 10 has no .metadata, as after a save that was broken off.",
        removed(f"job/checkpoints/{_NEWEST}/.metadata"),
        "the last checkpoint of each rank is there",
        "step-10",
        base=_FSDP,
    ),
    _checkpoint(
        "torch-shard-moments-zero",
        "The second moments in rank 1's shards of step 10 are zero.",
        dcp_stored(_part(_NEWEST, 1), _zero_squares),
        "parameters in rank 1's file of step 10 differ: optimizer.exp_avg_sq.",
        base=_FSDP,
    ),
    _checkpoint(
        "torch-loaded-shard-stale",
        "The shards of rank 1 from which the job went on are those of step 2.",
        _replaced(_part(_LOADED, 1), _part("step-2", 1)),
        "parameters in rank 1's file of step 4 differ: ",
        base=_FSDP,
    ),
    _consistency(
        "torch-shards-not-planned",
        "The scenario says that two copies hold the same shards, and each rank holds shards of its own.",
        _held_by({rank: [rank] for rank in range(4)}),
        "rank 0 alone holds its shards of the state, and by the plan",
        base=_HSDP,
        verdict="unknown",
    ),
    _consistency(
        "torch-copies-differ",
        "After the restart rank 2 holds another weight than rank 0, which holds the same shards.",
        _differs("0.weight", rank=2),
        "ranks 0 and 2 disagree after restart 1 of attempt train: 0.weight",
        base=_HSDP,
    ),
    _consistency(
        "torch-copies-moments-differ",
        "After the restart rank 3 holds other moments than rank 1, which holds the same shards.",
        _differs("optimizer.exp_avg.0", "optimizer.exp_avg_sq.0", rank=3),
        "ranks 1 and 3 disagree after restart 1 of attempt train: optimizer.exp_avg.0, optimizer.exp_avg_sq.0",
        base=_HSDP,
    ),
    _checkpoint(
        "torch-copy-stale",
        "A rank of the second copy has written its file of step 10 from the state of step 8.",
        _replaced(_part(_NEWEST, 2), _part(_OLDER, 2)),
        "of step 10 differ: ",
        base=_HSDP,
    ),
    _checkpoint(
        "torch-zero-moments-of-older-step",
        "The file of step 10 that rank 0 saved for all holds the moments of step 8.",
        _zero_of_older(f"{_NEWEST}.pt", f"{_OLDER}.pt", MOMENTS),
        "in rank 0's file of step 10 differ: optimizer.exp_avg.",
        base=_ZERO,
    ),
    _checkpoint(
        "torch-zero-moment-of-other-rank-off",
        "The moment of a weight whose optimizer state rank 1 keeps is off by a bit in the file that rank 0 saved.",
        torch_stored(f"{_NEWEST}.pt", lambda file: file.flip_bit(slot("exp_avg", 0), 1)),
        "of step 10 differ: optimizer.exp_avg.0",
        base=_ZERO,
    ),
    _checkpoint(
        "torch-zero-file-of-older-step",
        "The file of step 10 says step 10. Weights and optimizer are of step 8.",
        _zero_of_older(f"{_NEWEST}.pt", f"{_OLDER}.pt", tuple(STATE)),
        "in rank 0's file of step 10 differ",
        base=_ZERO,
    ),
)
