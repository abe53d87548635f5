"""Readers of the small files that MindFormers keeps beside its checkpoints, in either layout.

Legacy layout: ``rank_R/meta.json``, ``{"last_epoch", "last_step", "last_ckpt_file"}``. New layout:
``iteration_N/common.json``, the facts about one save; ``iteration_N/metadata.json``, which file holds which part of
which parameter; ``latest_checkpointed_iteration.txt``, the save to resume from. Source: MindFormers 1.2 to 2.1
(``core/callback/callback.py``, ``checkpoint/checkpoint.py``, ``checkpoint/metadata.py``, ``checkpoint/utils.py``).

All raise CheckpointError, which names the file and the mistake in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from chaos.base.plain_files import UnreadableFile, read_plain
from chaos.base.strict_json import parse
from chaos.observe.checkpoints.checkpoint_error import CheckpointError

META = "meta.json"
COMMON = "common.json"
METADATA = "metadata.json"
TRACKER = "latest_checkpointed_iteration.txt"

MAX_STEP = 10**18
_SMALL = 1 << 20
"""Size limit in bytes of each such file but ``metadata.json``, which grows with the parameters and the ranks."""

_COUNTS = ("epoch_num", "step_num", "global_step", "global_batch_size", "consumed_samples", "ckpt_status")


@dataclass(frozen=True)
class LastSaved:
    """``meta.json`` of one rank: the file that it finished last, with the epoch and the step in the file's name."""

    epoch: int
    step_in_epoch: int
    file: str


@dataclass(frozen=True)
class CommonInfo:
    """``common.json`` of one save. ``numbers`` holds the whole numbers that are set, by their names."""

    numbers: dict[str, int]

    @property
    def step(self) -> int | None:
        """The step of the save over the whole training: ``step_num``, else ``global_step``."""
        return self.numbers.get("step_num", self.numbers.get("global_step"))


@dataclass(frozen=True)
class Storage:
    """``metadata.json`` of one save. ``files`` maps the names of its files to the number of parts in each.

    ``ranks`` are the owners of the files: the number in a name is the rank only if every rank has saved everything.
    ``divided`` are the ranks with a part of their state saved by another rank only (``remove_redundancy``).
    """

    files: dict[str, int]
    ranks: dict[str, int]
    divided: frozenset[int]


def read_meta(path: Path) -> LastSaved:
    """Read ``meta.json``. A file must be a plain name: a name that leads to another directory is refused."""
    data = _mapping(path, _SMALL)
    epoch, step, file = data.get("last_epoch"), data.get("last_step"), data.get("last_ckpt_file")
    if not _count(epoch) or not _count(step):
        raise CheckpointError(path, f"last_epoch {_quoted(epoch)} and last_step {_quoted(step)} must be whole numbers")
    if not _file_name(file):
        raise CheckpointError(path, f"last_ckpt_file {_quoted(file)} is not the name of a file")
    return LastSaved(epoch, step, file)


def read_common(path: Path) -> CommonInfo:
    """Read ``common.json``. Unknown names are passed over; a known name must hold a number, or null."""
    data = _mapping(path, _SMALL)
    numbers: dict[str, int] = {}
    for name in _COUNTS:
        value = data.get(name)
        if value is None:
            continue
        if not _count(value):
            raise CheckpointError(path, f"{name} {_quoted(value)} must be a whole number")
        numbers[name] = value
    if not numbers.keys() & {"step_num", "global_step"}:
        raise CheckpointError(path, "holds neither step_num nor global_step, so nobody knows which step was saved")
    return CommonInfo(numbers)


def read_metadata(path: Path) -> Storage:
    """Read ``metadata.json``: the files of the save, and their owners."""
    storage = _mapping(path, None).get("storage_data")
    if not isinstance(storage, dict):
        raise CheckpointError(path, "storage_data, which says what is in which file, is not there")
    files: dict[str, int] = {}
    ranks: dict[str, set[int]] = {}
    divided: set[int] = set()
    for part, places in storage.items():
        listed = _sequence(places)
        names = [name for place in listed if isinstance(place, dict) and _file_name(name := place.get("file_name"))]
        if not names or len(names) != len(listed):
            raise CheckpointError(path, f"storage_data names no file for {part[:100]!r}")
        savers = set()
        for name, place in zip(names, listed, strict=True):
            files[name] = files.get(name, 0) + 1
            if _count(saver := place.get("storage_rank")):
                ranks.setdefault(name, set()).add(saver)
                savers.add(saver)
        for place in listed:
            divided.update({rank for rank in _sequence(place.get("rank_group")) if _count(rank)} - savers)
    return Storage(
        files, {name: min(its_ranks) for name, its_ranks in ranks.items() if len(its_ranks) == 1}, frozenset(divided)
    )


def read_tracker(path: Path) -> int:
    """Read ``latest_checkpointed_iteration.txt``: the iteration that a resume starts from."""
    text = _read(path, 1000).decode("utf-8", "replace").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise CheckpointError(path, f"{text[:40]!r} is no iteration")
    return int(text)


def _mapping(path: Path, limit: int | None) -> dict[str, Any]:
    content = _read(path, limit)
    try:
        data = parse(content, finite=False)  # loss_scale may be whatever Python's writer writes
    except ValueError as error:
        raise CheckpointError(path, f"not sound JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise CheckpointError(path, "not a table of names and values")
    return data


def _read(path: Path, limit: int | None) -> bytes:
    try:
        return read_plain(path) if limit is None else read_plain(path, limit)
    except UnreadableFile as error:
        raise CheckpointError(path, str(error.strerror)) from error


def _sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < MAX_STEP


def _file_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value not in ("", ".", "..") and not {"/", "\0"} & set(value)


def _quoted(value: object) -> str:
    return repr(value)[:40]
