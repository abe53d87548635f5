"""Find checkpoints whose names say nothing, by their content: for a job whose saves nobody has recorded.

Only files with a usual ending of a registered format are looked into, and only their first and last bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.base.walking import Unseen, raise_unseen, walk
from chaos.observe.checkpoints.checkpoint_reader import HEAD
from chaos.observe.checkpoints.layout import CheckpointFile, is_named
from chaos.observe.checkpoints.registered import directory_marks, file_endings, is_part, reader_of

_TAIL = 64
_RANK = re.compile(r"(?:^|[._-])(?<!mp_)rank[_-]?(?P<rank>\d{1,9})(?=[._-]|$)")
"""A rank in a name: ``rank_3``, ``state-rank3.pt``; Megatron's ``mp_rank_00`` is none of the job's."""


def is_finished(path: Path) -> bool:
    """Return whether a plain file is in a known format and ends as a finished file of it."""
    try:
        with open_plain(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            found = reader_of(stream.read(HEAD), size) if size else None
            stream.seek(max(0, size - _TAIL))
            return found is not None and found.reader.is_whole(stream.read(_TAIL))
    except (UnreadableFile, OSError):
        return False


def find_by_content(
    root: Path, unseen: Unseen = raise_unseen, finished: Callable[[Path], bool] = is_finished
) -> list[CheckpointFile]:
    """Return the finished checkpoints below ``root`` that :func:`.layout.find_checkpoints` does not name, by path.

    A directory that is one checkpoint is found as the file by which it is known. No link is followed. ``unseen`` is
    called as there. ``finished`` is asked about each file with a usual ending.
    """
    return sorted(_found(root, unseen, finished), key=lambda checkpoint: checkpoint.path)


def rank_in_path(path: Path, root: Path) -> int | None:
    """Return the rank in a file's name, or in that of a directory between it and ``root``; None where there is none."""
    for name in (
        path.stem,
        *(parent.name for parent in path.parents if parent != root and parent.is_relative_to(root)),
    ):
        if match := _RANK.search(name):
            return int(match["rank"])
    return None


def _found(root: Path, unseen: Unseen, finished: Callable[[Path], bool]) -> Iterator[CheckpointFile]:
    marks, endings = directory_marks(), file_endings()
    for directory, subdirectories, files in walk(root, unseen):
        subdirectories.sort()
        mark = next((mark for mark in marks if mark in files), None)
        for name in files if mark is None else (mark,):
            path = Path(directory, name)
            if mark is None and is_part(name):
                continue  # of a directory that is not finished
            if name.endswith(endings) and not is_named(path) and not path.is_symlink() and finished(path):
                yield _describe(path, root)


def _describe(path: Path, root: Path) -> CheckpointFile:
    rank = rank_in_path(path, root)
    return CheckpointFile(path, rank, None, None, None, False, "either", rank)
