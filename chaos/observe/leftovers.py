"""Files left behind by processes that do not end in order: dumps of their memory, and locks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chaos.base.plain_files import open_plain
from chaos.base.walking import Unseen, walk

_CORE = re.compile(r"core(?:[.-].{1,200})?|.{1,200}\.core")
_CORE_PID = re.compile(r"core[.-](\d{1,9})")
_LOCK = (".lock", ".pid")
_LONGEST_LOCK = 32
_ELF, _ET_CORE = b"\x7fELF", 4
_TYPE = 16
"""Offset of the type in an ELF file; the sixth byte gives the byte order."""


@dataclass(frozen=True)
class Leftover:
    """A dump (``core``) or a lock, and the process in its name or content; None if neither names a process."""

    path: Path
    kind: str
    pid: int | None


def find_leftovers(root: Path, unseen: Unseen) -> list[Leftover]:
    """Return the leftovers below ``root``, by path.

    A dump is known by its name and its first bytes: a file of that name may be anything. A lock counts if it holds a
    process id and nothing else; a lock without an id proves nothing, for most are never removed.
    """
    leftovers: list[Leftover] = []
    for directory, _, files in walk(root, unseen):
        for name in files:
            path = Path(directory, name)
            if _CORE.fullmatch(name) and _is_dump(path):
                match = _CORE_PID.fullmatch(name)
                leftovers.append(Leftover(path, "core", int(match[1]) if match else None))
            elif name.endswith(_LOCK) and (pid := _process_of(path)) is not None:
                leftovers.append(Leftover(path, "lock", pid))
    return sorted(leftovers, key=lambda leftover: leftover.path)


def _is_dump(path: Path) -> bool:
    head = _head(path, _TYPE + 2)
    if len(head) < _TYPE + 2 or not head.startswith(_ELF):
        return False
    return int.from_bytes(head[_TYPE : _TYPE + 2], "big" if head[5] == 2 else "little") == _ET_CORE


def _process_of(path: Path) -> int | None:
    content = _head(path, _LONGEST_LOCK + 1).strip()
    return int(content) if content.isdigit() and len(content) < _LONGEST_LOCK else None


def _head(path: Path, count: int) -> bytes:
    try:
        with open_plain(path) as stream:
            return stream.read(count)
    except OSError:  # a link, a pipe, or not for this user: not what is looked for
        return b""
