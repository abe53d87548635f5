"""What one rank's part of a save of MindFormers' new layout holds: parameters, optimizer state, and the facts beside.

The step is in ``common.json`` and in the optimizer's own counter; both must say the same.
"""

from __future__ import annotations

from pathlib import Path

from chaos.observe.checkpoint import Checkpoint, read_checkpoint
from chaos.observe.checkpoint_error import CheckpointError
from chaos.observe.layout import DIGESTED
from chaos.observe.mindformers_layout import companion, model_name
from chaos.observe.mindformers_records import COMMON, METADATA, CommonInfo, read_common, read_metadata_files

_STEP = "global_step"


def read_parts(model: Path) -> tuple[list[Checkpoint], CommonInfo]:
    """The files of the rank that ``model`` belongs to, and ``common.json``.

    Raises CheckpointError when one of them is missing or damaged, a name is in two of them, or they are of different
    saves. Whether a job saves its optimizer cannot be told from one rank without ``metadata.json``: then a file that
    is not there is not missed.
    """
    directory, optimizer = model.parent, companion(model)
    assert optimizer is not None
    metadata = directory / METADATA
    listed = read_metadata_files(metadata) if metadata.exists() else {}
    for name in listed:
        if not is_kept(directory, name):
            raise CheckpointError(model, f"{METADATA} beside it names {name}, which is missing")
    parts = [read_checkpoint(model)]
    if optimizer.exists():
        parts.append(read_checkpoint(optimizer))
        twice = sorted(parts[0].tensors.keys() & parts[1].tensors.keys())
        if twice:
            raise CheckpointError(optimizer, f"{twice[0]!r} is in {model.name} too")
    common = read_common(directory / COMMON)
    counted = parts[-1].number(_STEP)
    told = common.numbers.get(_STEP)
    if counted is not None and told is not None and counted != told:
        problem = f"the optimizer has counted {counted} steps, {COMMON} beside it says {told}: they are of two saves"
        raise CheckpointError(parts[-1].path, problem)
    return parts, common


def is_kept(directory: Path, name: str) -> bool:
    """Whether a file of a save is there, or digests are in its place; those of a model stand for its optimizer too."""
    model = model_name(name) or name
    return any((directory / one).is_file() for one in (name, name + DIGESTED, model + DIGESTED))


def part_files(path: Path) -> tuple[Path, ...]:
    """All files whose content :func:`chaos.observe.saved_state.read_saved_state` reads tensors from at ``path``."""
    optimizer = companion(path)
    return (path,) if optimizer is None or not optimizer.is_file() else (path, optimizer)
