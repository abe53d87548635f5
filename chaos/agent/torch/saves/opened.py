"""The files that a process opens for writing, from the first question on: one of them may get a checkpoint's bytes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

_MOST = 32
_WRITING = os.O_WRONLY | os.O_RDWR


class OpenedFiles:
    """The paths that were opened for writing since they were taken last, by Python's own audit of ``open``."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._watches = False

    def watch(self) -> None:
        """See the files that are opened from now on."""
        if not self._watches:
            self._watches = True
            sys.addaudithook(self._see)

    def take(self) -> list[str]:
        """Return the paths, and forget them."""
        paths, self._paths = self._paths, {}
        return list(paths)

    def _see(self, event: str, args: Any) -> None:
        if event != "open":
            return
        with suppress(Exception):  # an error here would be one of the job's own call
            path, _, flags = args
            if flags & _WRITING and isinstance(path, (str, bytes)) and len(self._paths) < _MOST:
                self._paths[os.path.abspath(os.fsdecode(path))] = None
