"""Leaving a process at once, by ``os._exit``: never without a last word in the process's own log."""

from __future__ import annotations

import contextlib
import os
import sys

_STDERR = 2


def leave(code: int, why: str) -> None:
    """End this process with ``code``, from any of its threads. Its log then has all of its output, and ``why``."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # closed, or no longer writable
                stream.flush()
    say(why)
    os._exit(code)


def say(text: str) -> None:
    """Write a line on standard error. It is in the kernel's hands when this returns."""
    with contextlib.suppress(OSError):  # nobody can read it
        os.write(_STDERR, f"{text}\n".encode("utf-8", "backslashreplace"))
