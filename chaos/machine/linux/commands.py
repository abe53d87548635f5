"""The only way in which the harness runs a tool of the machine: fixed words, no shell, bounded in every way."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

MAX_OUTPUT = 1 << 20
"""Bytes of a stream that are read. The table of 64 cards has less than 20,000."""

SECONDS = 30.0
"""How long a tool may take. A tool of the driver answers within a second, unless the driver hangs."""

_END_SECONDS = 5.0
"""How long a killed tool may take to end. In the kernel's uninterruptible sleep it does not end."""

_KEPT = ("PATH", "LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "HOME", "KUBECONFIG")
_SYSTEM = ("/usr/sbin", "/sbin")
"""Directories of system tools, searched after PATH: an ordinary user's PATH lacks them; ``nsenter … ip`` uses them."""

_QUOTED = 300
_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {}
"""A second Ctrl-C must not end the tool that restores a card. The tool stays in the harness's session: children in
another session count as the job's (:mod:`chaos.machine.linux.children`)."""

PLACES: Mapping[str, tuple[str, ...]] = {
    "npu-smi": ("/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi"),
    "hccn_tool": ("/usr/local/Ascend/driver/tools/hccn_tool",),
    **{name: (f"/usr/sbin/{name}", f"/sbin/{name}") for name in ("ip", "iptables", "mkfs.ext4", "sysctl", "tc")},
}
"""Where packages install a tool that need not be on the PATH."""


class CommandError(RuntimeError):
    """A tool could not be run, took too long, printed too much, or failed. The text quotes its output."""


class NoSuchTool(CommandError):
    """A tool is not on this machine, or is never run: a second attempt would not help."""


@dataclass(frozen=True)
class Done:
    """A tool that has ended. ``code`` is its exit code, minus the signal where a signal ended it."""

    argv: tuple[str, ...]
    code: int
    output: str
    errors: str = ""

    def __str__(self) -> str:
        return " ".join(self.argv)

    def checked(self) -> str:
        """Return the tool's output. Raises CommandError where it did not end with 0."""
        if self.code != 0:
            quote = quoted(self.errors.strip() or self.output.strip() or "nothing")
            raise CommandError(f"{self} ended with {self.code} and said {quote}")
        return self.output


class Commands(Protocol):
    """Runs tools; in tests, answers from recordings."""

    def __call__(self, *argv: str, answer: str = "") -> Done:
        """Run ``argv`` and wait for its end. ``answer`` is typed in. Raises CommandError."""


def quoted(text: str) -> str:
    """Return output of a tool for a message: one line, bounded."""
    short = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
    return repr(short)


def find_tool(
    name: str,
    which: Callable[[str], str | None] = shutil.which,
    places: Mapping[str, tuple[str, ...]] = PLACES,
) -> Path | None:
    """Return the path of a vendor's tool: on the PATH, or where its package installs it."""
    candidates = [which(name), *places.get(name, ())]
    return next((Path(candidate) for candidate in candidates if candidate and os.access(candidate, os.X_OK)), None)


@dataclass(frozen=True)
class SystemCommands:
    """Runs tools of this machine as the harness's own user, never as another one."""

    seconds: float = SECONDS
    find: Callable[[str], Path | None] = find_tool
    marks: Mapping[str, str] = field(default_factory=dict)
    """Variables by which others find a tool that is under way."""

    def __call__(self, *argv: str, answer: str = "") -> Done:
        """Run a tool as :class:`Commands` does."""
        path = self.find(argv[0])
        if path is None:
            raise NoSuchTool(f"there is no {argv[0]} on this machine")
        if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise NoSuchTool(f"{path} would run as another user; it was not run")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"LC_ALL": "C", **self.marks}
        environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), *_SYSTEM])
        try:
            process = subprocess.Popen(
                [str(path), *argv[1:]],
                env=environment,
                stdin=subprocess.PIPE if answer else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **_OWN_GROUP,
            )
        except OSError as error:
            raise CommandError(f"{path} cannot be run: {error.strerror}") from error
        what = " ".join(argv)
        try:
            if process.stdin is not None:
                process.stdin.write(answer.encode())
                process.stdin.close()
            output, errors = _read(process, what, self.seconds)
        except BrokenPipeError as error:
            raise CommandError(f"{what} ended before it was answered") from error
        finally:
            _end(process, what)
        return Done(argv, process.returncode, output, errors)


def _end(process: subprocess.Popen[bytes], what: str) -> None:
    """End the tool, if it has not ended.

    Raises CommandError where the kernel does not let it end: a driver hangs.
    """
    process.kill()  # nothing where it has ended
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{what} cannot be ended: process {process.pid} hangs in the kernel and is left") from error


def _read(process: subprocess.Popen[bytes], what: str, seconds: float) -> tuple[str, str]:
    """Return both streams, read to their ends, once the process has ended within ``seconds``. Raises CommandError."""
    assert process.stdout is not None and process.stderr is not None
    until = time.monotonic() + seconds
    late = f"{what} took more than {seconds:g} s"
    read: dict[int, bytes] = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with selectors.DefaultSelector() as selector:
        for number in read:
            selector.register(number, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                raise CommandError(late)
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                read[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                elif len(read[key.fd]) > MAX_OUTPUT:
                    raise CommandError(f"{what} printed more than {MAX_OUTPUT:,} bytes")
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise CommandError(late) from error
    output, errors = (content.decode("utf-8", "replace") for content in read.values())
    return output, errors
