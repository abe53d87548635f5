"""Find checkpoint files under a directory, by the names that MindSpore and MindFormers give them.

A name is a hint; the numbers stored inside the file are the truth. Nothing is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.base.walking import Unseen, raise_unseen, walk
from chaos.observe.checkpoints.mindformers_layout import ITERATION, PART
from chaos.observe.checkpoints.tracked_layouts import save_of

Kind = Literal["end-of-life", "periodic", "either"]

DIGESTED = ".digests.json"
"""Suffix of a file that replaces a checkpoint too large to keep: ``ttp_rank_0-1_5.ckpt.digests.json``."""

UNFINISHED_DIGESTS = ".digests.new"
"""Suffix of the same file while it is written; until the end, the checkpoint is beside it."""

# ttp_: MindSpore 2.7 to 2.10; tft_: older releases and their documents.
_STEP_DIRECTORY = re.compile(r"(?:ttp|tft)_saved_checkpoints-step_(?P<step>\d{1,18})(?P<temporary>_tmp)?")
_RANK_DIRECTORY = re.compile(r"rank_(?P<rank>\d{1,18})")
# prefix-epoch_step; the writer calls it .tmp until it is complete. A large one may have been replaced by its digests.
_FILE = re.compile(
    r"(?P<prefix>.+)-(?P<epoch>\d{1,18})_(?P<step>\d{1,18})\.(?P<suffix>ckpt|safetensors|tmp)"
    rf"(?:{re.escape(DIGESTED)})?"
)
# MindFormers appends _rank_R to the prefix, and a number where the job was started again; network and trainable_params
# are files of weights only (MindFormers 1.2 to 2.1, core/callback/callback.py).
_RANK_IN_PREFIX = re.compile(r"(?:^|_)rank_(?P<rank>\d{1,18})(?:_\d+)?(?:-network|-trainable_params)?$")
_FORMATS = (".ckpt", ".safetensors")


@dataclass(frozen=True)
class CheckpointFile:
    """One file with the name of a checkpoint.

    ``rank`` comes from the directory ``rank_R``. A file elsewhere has the rank in its own name, or None: then
    chaos.evidence.checkpoints.owner finds the owner by other evidence. ``name_rank`` comes from the
    file's own name when it has a rank. ``epoch`` and ``step_in_epoch`` are from the name, None if it has another
    form. ``directory_step`` is the step that a directory of end-of-life checkpoints names. ``temporary``: the directory
    is still ``..._tmp`` or the file still ``.tmp``, so the writer did not finish. ``kind`` is ``end-of-life`` in such a
    directory, ``periodic`` for MindSpore's own names, and ``either`` for the names of MindFormers, which uses the same
    names for both, and for files elsewhere. In MindFormers' new layout, ``path`` is the model file, ``rank`` the number
    in its name, and the directory's iteration counts as the step of one long epoch.
    """

    path: Path
    rank: int | None
    epoch: int | None
    step_in_epoch: int | None
    directory_step: int | None
    temporary: bool
    kind: Kind
    name_rank: int | None

    @property
    def step(self) -> int | None:
        """The step over the whole job in the directory's name, None if only the step in an epoch is known."""
        save = save_of(self.path)
        return self.directory_step if save is None else save.step

    @property
    def saved_as(self) -> Path:
        """The path under which the job saved it: ``path``, unless only its digests were kept."""
        return self.path.with_name(self.path.name.removesuffix(DIGESTED))

    @property
    def in_rank_directory(self) -> bool:
        """Whether the file lies in the directory of its rank, ``rank_R``: then the rank is beyond doubt."""
        return _RANK_DIRECTORY.fullmatch(self.path.parent.name) is not None


def find_checkpoints(root: Path, unseen: Unseen = raise_unseen) -> list[CheckpointFile]:
    """Return all checkpoint files under ``root``, ordered by path. Symbolic links are not followed.

    Looked for: ``ttp_saved_checkpoints-step_N[_tmp]/rank_R/ttp_rank_R-E_S.ckpt``, the same with ``tft_``, MindFormers'
    ``rank_R/{prefix}_rank_R[_repeat]-E_S.{ckpt,safetensors}`` and ``iteration_N/{prefix}-model-R-ranks.safetensors``,
    and periodic ``rank_R/{prefix}-E_S.{ckpt,safetensors}``; the same names outside a directory of a rank; and any other
    file of these formats in a directory ``iteration_N``.
    A ``root`` that does not exist holds nothing. ``unseen`` receives each path that is not read because it is
    unreadable or too deep (chaos.base.walking); by default that raises OSError, for a checkpoint may be there.
    """
    checkpoints: list[CheckpointFile] = []
    for directory, subdirectories, files in walk(root, unseen):
        subdirectories.sort()
        iteration = ITERATION.fullmatch(Path(directory).name)
        if iteration is not None:
            checkpoints.extend(_in_iteration(Path(directory), int(iteration["step"]), files))
            continue
        for name in sorted(files):
            path = Path(directory, name)
            if (match := _FILE.fullmatch(name)) and path.is_file() and not path.is_symlink():
                checkpoints.append(_describe(path, match))
    return sorted(checkpoints, key=lambda checkpoint: checkpoint.path)


def _in_iteration(directory: Path, step: int, files: list[str]) -> Iterator[CheckpointFile]:
    """Yield the parts of the ranks in one save of MindFormers' new layout, and files of other names.

    The optimizer's part belongs to the model's part, so it is no checkpoint by itself.
    """
    for name in files:
        path = directory / name
        plain = name.removesuffix(DIGESTED).removesuffix(".tmp")
        unfinished = name.endswith(".tmp")
        match = PART.fullmatch(f"{plain}.safetensors" if unfinished else plain)
        if match is None and not plain.endswith(_FORMATS):
            continue
        if (match is None or match["part"] == "model") and path.is_file() and not path.is_symlink():
            rank = rank_in_name(Path(plain).stem) if match is None else int(match["rank"])
            yield CheckpointFile(path, rank, 1, step, None, unfinished, "either", rank)


def is_named(path: Path) -> bool:
    """Return whether :func:`find_checkpoints` finds a file, or a part of a save, by its name."""
    return _FILE.fullmatch(path.name) is not None or ITERATION.fullmatch(path.parent.name) is not None


def find_temporary_directories(root: Path, unseen: Unseen = raise_unseen) -> list[Path]:
    """Return end-of-life directories that were never renamed (``..._tmp``), including empty ones.

    ``unseen`` receives each path that cannot be read; without ``unseen`` an OSError is raised: one may be there.
    """
    paths = []
    for directory, subdirectories, _ in walk(root, unseen):
        for name in subdirectories:
            path = Path(directory, name)
            if (match := _STEP_DIRECTORY.fullmatch(name)) and match["temporary"] and not path.is_symlink():
                paths.append(path)
    return sorted(paths)


def _describe(path: Path, match: re.Match[str]) -> CheckpointFile:
    directory = _RANK_DIRECTORY.fullmatch(path.parent.name)
    named = rank_in_name(match["prefix"])
    above = path.parent.parent if directory else path.parent
    step_directory = _STEP_DIRECTORY.fullmatch(above.name)
    kind: Kind = "periodic" if directory and named is None else "either"
    return CheckpointFile(
        path=path,
        rank=int(directory["rank"]) if directory else named,
        epoch=int(match["epoch"]),
        step_in_epoch=int(match["step"]),
        directory_step=int(step_directory["step"]) if step_directory else None,
        temporary=match["suffix"] == "tmp" or bool(step_directory and step_directory["temporary"]),
        kind="end-of-life" if step_directory else kind,
        name_rank=named,
    )


def rank_in_name(prefix: str) -> int | None:
    """Return the rank that a file's name ends with, or that stands before epoch and step; None if there is none."""
    match = _RANK_IN_PREFIX.search(prefix)
    return int(match["rank"]) if match else None
