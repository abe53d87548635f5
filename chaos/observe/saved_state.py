"""What a checkpoint holds, without its values: all that most comparisons need, and all that is kept of a large one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from chaos.observe.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.layout import DIGESTED
from chaos.plain_files import read_plain

_FORMAT = 1


@dataclass(frozen=True)
class SavedState:
    """The content of a checkpoint by digests.

    ``digests`` maps every parameter to its digest. ``infinite`` names parameters that hold NaN or infinity.
    ``numbers`` holds single whole numbers, appended or parameters.
    """

    digests: dict[str, str]
    infinite: tuple[str, ...]
    numbers: dict[str, int]


@dataclass(frozen=True)
class _Digested:
    format: int
    size: int
    state: SavedState | None
    problem: str | None


def read_saved_state(path: Path) -> SavedState:
    """Read a checkpoint file, or the digests that were kept of one.

    Raises CheckpointError when the file is not sound, also when the digests say that the file they stand for was not.
    """
    if path.name.endswith(DIGESTED):
        return _read_digested(path)
    checkpoint = read_checkpoint(path)
    names = {*checkpoint.values, *checkpoint.tensors}
    return SavedState(
        digests={name: tensor.digest() for name, tensor in checkpoint.tensors.items()},
        infinite=tuple(name for name, tensor in checkpoint.tensors.items() if not tensor.finite()),
        numbers={name: number for name in names if (number := checkpoint.number(name)) is not None},
    )


def keep_digests(path: Path) -> Path:
    """Put digests in the place of a checkpoint file, and return their path. A damaged file is kept as its damage."""
    size = path.stat().st_size
    try:
        digested = _Digested(_FORMAT, size, read_saved_state(path), None)
    except CheckpointError as error:
        digested = _Digested(_FORMAT, size, None, error.problem)
    target = path.with_name(path.name + DIGESTED)
    unfinished = target.with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(digested)), "utf-8")
    unfinished.replace(target)
    path.unlink()
    return target


def _read_digested(path: Path) -> SavedState:
    try:
        digested = TypeAdapter(_Digested).validate_json(read_plain(path))
    except OSError as error:
        raise CheckpointError(path, str(error.strerror)) from error
    except ValidationError as error:
        raise CheckpointError(path, f"not the digests of a checkpoint: {error.error_count()} problems") from error
    if digested.state is None:
        raise CheckpointError(path, digested.problem or "its digests are missing")
    return digested.state
