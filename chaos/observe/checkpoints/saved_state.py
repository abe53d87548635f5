"""Content of a checkpoint by digests: enough for most comparisons, and all that is kept of a large checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from chaos.agent.digest import EMPTY_PART, number_digest
from chaos.base.plain_files import read_plain
from chaos.observe.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointNotSupported,
    read_checkpoint,
)
from chaos.observe.checkpoints.layout import DIGESTED, UNFINISHED_DIGESTS
from chaos.observe.checkpoints.mindformers_layout import ITERATION, companion
from chaos.observe.checkpoints.mindformers_records import COMMON
from chaos.observe.checkpoints.mindformers_state import part_files, read_parts

NO_VALUE = EMPTY_PART
"""The digest of a rank that holds no value of a parameter which is cut over ranks."""

_FORMAT = 1


@dataclass(frozen=True)
class SavedState:
    """The content of a checkpoint by digests.

    ``digests`` maps every parameter to its digest. ``infinite`` names parameters that hold NaN or infinity.
    ``numbers`` holds single whole numbers, plain or parameters. ``partial``: parts of the state that other ranks
    save are left out. ``shards`` holds the digests of the parts of a parameter by the ranks that wrote them, where
    ranks hold parts; ``digests`` has the whole parameter.
    """

    digests: dict[str, str]
    infinite: tuple[str, ...]
    numbers: dict[str, int]
    partial: bool = False
    shards: dict[str, dict[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Digested:
    format: int
    size: int
    state: SavedState | None
    problem: str | None
    supported: bool = True


def read_saved_state(path: Path) -> SavedState:
    """Read a checkpoint file, or its kept digests.

    A model file of MindFormers' new layout is read with the optimizer's file and ``common.json`` beside it: together
    they are the saved state of one rank. Another file in a directory of that layout is read with them if they exist.
    Raises CheckpointError if the file is not sound, or if its digests record that it was not.
    """
    if path.name.endswith(DIGESTED):
        return _read_digested(path)
    if companion(path) is None and not (ITERATION.fullmatch(path.parent.name) and (path.parent / COMMON).exists()):
        return _state(read_checkpoint(path))
    parts, common, divided = read_parts(path)
    states = [_state(part) for part in parts]
    return SavedState(
        digests={name: digest for state in states for name, digest in state.digests.items()},
        infinite=tuple(name for state in states for name in state.infinite),
        numbers={name: number for state in states for name, number in state.numbers.items()} | common.numbers,
        partial=divided or any(state.partial for state in states),
    )


def _state(checkpoint: Checkpoint) -> SavedState:
    digests = {name: tensor.digest for name, tensor in checkpoint.tensors.items()}
    if checkpoint.about_save is not None:  # plain values are part of the state, as the agent digests them
        digests |= {name: number_digest(value) for name, value in checkpoint.values.items()}
    return SavedState(
        digests=digests,
        infinite=tuple(name for name, tensor in checkpoint.tensors.items() if not tensor.finite),
        numbers=checkpoint.numbers,
        partial=checkpoint.partial,
        shards={name: dict(parts) for name, parts in checkpoint.shards.items()},
    )


def keep_digests(paths: Sequence[Path]) -> list[Path]:
    """Replace checkpoint files by their digests, and return the paths of the digests.

    The record of a damaged file is its damage.

    The file of the optimizer's state goes with a model file of MindFormers' new layout. All are read before the first
    of them is replaced: the files of the other ranks decide whether the part of one rank is sound.
    """
    digested = [_digest(path) for path in paths]
    kept = [_write(path.with_name(path.name + DIGESTED), digest) for path, digest in zip(paths, digested, strict=True)]
    for path in paths:
        for file in part_files(path):
            file.unlink()
    return kept


def _digest(path: Path) -> _Digested:
    size = sum(file.stat().st_size for file in part_files(path))
    try:
        return _Digested(_FORMAT, size, read_saved_state(path), None)
    except CheckpointError as error:
        return _Digested(_FORMAT, size, None, error.problem, not isinstance(error, CheckpointNotSupported))


def _write(target: Path, digested: _Digested) -> Path:
    unfinished = target.with_name(target.name.removesuffix(DIGESTED) + UNFINISHED_DIGESTS)
    unfinished.write_text(json.dumps(asdict(digested)), "utf-8")
    unfinished.replace(target)
    return target


def _read_digested(path: Path) -> SavedState:
    try:
        digested = TypeAdapter(_Digested).validate_json(read_plain(path))
    except OSError as error:
        raise CheckpointError(path, str(error.strerror)) from error
    except ValidationError as error:
        raise CheckpointError(path, f"not the digests of a checkpoint: {error.error_count()} problems") from error
    if digested.state is None and not digested.supported:
        raise CheckpointNotSupported(path, digested.problem or "it could not be judged")
    if digested.state is None:
        raise CheckpointError(path, digested.problem or "its digests are missing")
    return digested.state
