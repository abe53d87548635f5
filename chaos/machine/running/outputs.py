"""The logs of a process, by its open files: no name has to be guessed, no directory searched."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from chaos.machine.linux.procfs import PROC, kernel_lines, read_text
from chaos.machine.running.directories import FileKey, opened, tees_of

_LOG = re.compile(r"\.log(\.\d{1,10})?$")
_OUTPUTS = ("1", "2")


@dataclass(frozen=True)
class Output:
    """A plain file that a process writes.

    ``path`` is as the process sees it, ``link`` leads to it while the process has it open.
    """

    key: FileKey
    path: str
    link: Path

    def open(self) -> BinaryIO:
        """Open it for reading, without an effect on its writer. Raises OSError once the process has ended."""
        descriptor = os.open(self.link, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        stream = os.fdopen(descriptor, "rb")
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) != self.key:
            stream.close()
            raise FileNotFoundError(f"{self.path}: the process has another file open by now")
        return stream


def outputs_of(pid: int, proc_root: Path = PROC) -> list[Output]:
    """Return a process's standard output and error where they are plain files, and its open logs.

    Logs are files named ``*.log``, ``*.log.N`` that it has open for writing. Empty when they cannot be read.
    """
    try:
        numbers = sorted(os.listdir(proc_root / str(pid) / "fd"))  # noqa: PTH208 - names are wanted
    except OSError:
        return []
    return _outputs(pid, numbers, proc_root)


def standard_outputs_of(pid: int, proc_root: Path = PROC) -> list[Output]:
    """Return a process's standard output and error where they are plain files.

    Quick, whatever else the process has open.
    """
    return _outputs(pid, _OUTPUTS, proc_root)


def teed_outputs_of(pid: int, proc_root: Path = PROC) -> list[Output]:
    """Return the files into which a ``tee`` writes the output of a process. Goes through all processes of the host."""
    tees = tees_of(proc_root / str(pid), proc_root)
    return [output for tee in tees for output in _outputs(int(tee.name), opened(tee), proc_root, whatever=True)]


def _outputs(pid: int, numbers: Iterable[str], proc_root: Path, *, whatever: bool = False) -> list[Output]:
    place = proc_root / str(pid) / "fd"
    outputs: dict[FileKey, Output] = {}
    for number in numbers:
        link = place / number
        try:
            path, status = str(link.readlink()), link.stat()
        except OSError:
            continue
        named = whatever or number in _OUTPUTS or _LOG.search(PurePath(path).name) is not None
        if named and stat.S_ISREG(status.st_mode) and _writes(pid, number, proc_root):
            key = (status.st_dev, status.st_ino)
            outputs.setdefault(key, Output(key, path, link))
    return list(outputs.values())


def _writes(pid: int, number: str, proc_root: Path) -> bool:
    """Return whether that descriptor is open for writing, by /proc/PID/fdinfo (proc(5): flags in octal)."""
    for line in kernel_lines(read_text(pid, f"fdinfo/{number}", proc_root) or ""):
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
