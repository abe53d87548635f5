"""A directory that goes with its process, however that ends: by a signal too, or by an engine that runs no clean-up."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path


def swept_directory(prefix: str, parent: Path | None) -> Path:
    """A new directory below ``parent`` (by default where temporary files go) that is removed when this process ends.

    A child process does it. It waits for the end of a pipe that this process holds open and no program that it starts
    inherits. It is in a session of its own, so that what ends this process from a terminal does not end it as well.
    """
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    read, write = os.pipe()
    ready, say_ready = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(write)
        os.close(say_ready)
        os.read(read, 1)
        shutil.rmtree(directory, ignore_errors=True)
        os._exit(0)
    os.close(read)
    os.close(say_ready)
    os.read(ready, 1)
    os.close(ready)
    return directory
