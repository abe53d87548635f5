"""One rank's part of a save of MindFormers' new layout: parameters, optimizer state, and the facts beside.

The step is in ``common.json`` and in the optimizer's own counter; both must agree. ``metadata.json`` names the owner
of a file; the number in the file's name counts files where ranks have saved different parts of the same state
(MindFormers 2.1, checkpoint/fully_parallel.py).
"""

from __future__ import annotations

from pathlib import Path

from chaos.observe.checkpoints.checkpoint import Checkpoint, read_checkpoint
from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.observe.checkpoints.mindformers_layout import PART, companion, model_name
from chaos.observe.checkpoints.mindformers_records import (
    COMMON,
    METADATA,
    CommonInfo,
    Storage,
    read_common,
    read_metadata,
)
from chaos.observe.checkpoints.registered import files_of

_STEP = "global_step"


def read_parts(path: Path) -> tuple[list[Checkpoint], CommonInfo, bool]:
    """Return the files of the rank of ``path``, ``common.json``, and whether other ranks have saved parts of its
    state. ``path`` is the model's file, the optimizer's file of a rank without a model, or a file of another name.

    Raises CheckpointError if a file is missing or damaged, a name is in two files, or the files are of different
    saves. Without ``metadata.json``, one rank does not show whether a job saves its optimizer: then a missing file
    is no error.
    """
    directory = path.parent
    storage = storage_of(directory)
    optimizer = optimizer_of(path, storage)
    for name in storage.files if storage is not None else ():
        if not is_kept(directory, name):
            raise CheckpointError(path, f"{METADATA} beside it names {name}, which is missing")
    parts = [read_checkpoint(path)]
    if optimizer is not None and optimizer.exists():
        parts.append(read_checkpoint(optimizer))
        twice = sorted(parts[0].tensors.keys() & parts[1].tensors.keys())
        if twice:
            raise CheckpointError(optimizer, f"{twice[0]!r} is in {path.name} too")
    common = read_common(directory / COMMON)
    counted = parts[-1].number(_STEP)
    recorded = common.numbers.get(_STEP)
    if counted is not None and recorded is not None and counted != recorded:
        problem = (
            f"the optimizer has counted {counted} steps, {COMMON} beside it says {recorded}: they are of two saves"
        )
        raise CheckpointError(parts[-1].path, problem)
    return parts, common, storage is not None and _is_divided(storage, path.name)


def optimizer_of(model: Path, storage: Storage | None) -> Path | None:
    """Return the file of the optimizer's state for a model file; None for another kind of file, and where
    ``metadata.json`` says that the rank has none.

    It has the same number in its name, unless ``metadata.json`` says that the rank saved another file.
    """
    named = companion(model)
    if named is None or storage is None or model.name not in storage.ranks:
        return named
    optimizers = [name for name in storage.files if (match := PART.fullmatch(name)) and match["part"] == "opt"]
    files = sorted(name for name in optimizers if storage.ranks.get(name) == storage.ranks[model.name])
    if files:
        return model.with_name(files[0])
    return None if optimizers else named


def storage_of(directory: Path) -> Storage | None:
    """Return the ``metadata.json`` of the save in a directory; None if there is none. Raises CheckpointError."""
    path = directory / METADATA
    return read_metadata(path) if path.exists() else None


def is_kept(directory: Path, name: str) -> bool:
    """Return whether a file of a save, or its digests, exists; digests of a model stand for its optimizer, too."""
    model = model_name(name) or name
    return any((directory / file).is_file() for file in (name, name + DIGESTED, model + DIGESTED))


def part_files(path: Path) -> tuple[Path, ...]:
    """Return all files from which :func:`.saved_state.read_saved_state` reads tensors for ``path``."""
    if (named := companion(path)) is None:
        return files_of(path)
    try:
        optimizer = optimizer_of(path, storage_of(path.parent))
    except CheckpointError:  # so the save is damaged, whatever goes with it
        optimizer = named
    return (path,) if optimizer is None or not optimizer.is_file() else (path, optimizer)


def _is_divided(storage: Storage, name: str) -> bool:
    owner = storage.ranks.get(name)
    return bool(storage.divided) if owner is None else owner in storage.divided
