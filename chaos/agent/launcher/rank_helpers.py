"""Processes that a rank starts: they have its environment, and so its number, and are no new process of the rank.

A data loader starts its workers by ``spawn`` or a fork server, ``torch.compile`` starts its compilers, and a script any
program. The record of a rank has the number of its process in its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_MOST_ANCESTORS = 64


def is_helper(history: str, attempt: str, rank: int) -> bool:
    """Return whether a process above this one has a record of this rank in a directory of history files."""
    return any(os.path.exists(os.path.join(history, f"{attempt}-rank_{rank}-{pid}.jsonl")) for pid in _ancestors())


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):  # it has ended
            return
