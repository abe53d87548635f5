"""The content of files that faults replace: read in blocks, identified by digests, and put in place in one act."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from chaos.base.plain_files import open_plain

ABSENT = "absent"
"""The evidence's entry in place of a digest where there is no file any more."""

_BLOCK = 1 << 20


def duplicate(path: Path, other: Path) -> None:
    """Give a file a second name; a copy where the name is on another file system, or not allowed. Raises OSError."""
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError:
        shutil.copyfile(path, other, follow_symlinks=False)
        look_like(path, other)


def replace_content(path: Path, content: Iterable[bytes], check: Callable[[], None]) -> None:
    """Put another content in a file's place in one act. Owner, mode and times of the file stay. Raises OSError.

    ``check`` is called just before; an error that it raises leaves the file alone.
    """
    unfinished = unfinished_place(path)
    with unfinished.open("xb") as file:
        for block in content:
            file.write(block)
    look_like(path, unfinished)
    check()
    unfinished.replace(path)


def look_like(path: Path, copy: Path) -> None:
    """Give a copy of a file its owner, mode and times. Raises OSError."""
    owner = path.lstat()
    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(copy, owner.st_uid, owner.st_gid, follow_symlinks=False)
    shutil.copystat(path, copy, follow_symlinks=False)


def unfinished_place(path: Path) -> Path:
    """Return the place of the content before it takes the file's place; no job takes that name for a checkpoint."""
    return path.with_name(f".{path.name}.chaos")


def blocks(path: Path, size: int | None = None) -> Iterable[bytes]:
    """Yield the content of a plain file, or its first ``size`` bytes, in blocks. Raises OSError."""
    with open_plain(path) as file:
        left = os.fstat(file.fileno()).st_size if size is None else size
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            left -= len(block)
            yield block


def digest_of(content: Iterable[bytes] | None) -> str:
    """Return the SHA-256 of content in pieces; ``absent`` for no file."""
    if content is None:
        return ABSENT
    digest = hashlib.sha256()
    for block in content:
        digest.update(block)
    return digest.hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a plain file. Raises OSError."""
    return digest_of(blocks(path))
