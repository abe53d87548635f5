"""A machine as the probes see it, and the result of a probe."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Protocol

from chaos.machine.linux.commands import PLACES, Commands, SystemCommands

GIB = 1024**3


@dataclass(frozen=True)
class Probe:
    """The result of one probe.

    ``advice`` says what to do when the probed item is missing, and is empty when it is there.
    """

    need: str
    ok: bool
    seen: str
    advice: str = ""


class BringsProbes(Protocol):
    """An object with needs of its own, and the probes that look for them, by name."""

    @property
    def probes(self) -> Mapping[str, Callable[[Machine], Probe]]:
        """The probe for each need. Probes change nothing."""


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None where there is none of that name.

    Only the first lines of its metadata matter here, and parsing the whole text takes milliseconds.
    """
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    match = re.search(r"^Version: *(\S+)$", distribution.read_text("METADATA") or "", re.MULTILINE)
    return distribution.version if match is None else match[1]


def owners_of(command: str) -> tuple[str, ...]:
    """Return the installed packages that have a command of this name, in alphabetical order."""
    points = metadata.entry_points(group="console_scripts", name=command)
    return tuple(sorted({point.dist.name for point in points if point.dist is not None}))


def has_module(name: str) -> bool:
    """Return whether a top-level module can be imported, without importing it.

    A directory of that name without a module in it, such as a sample's directory beside which a command is given, does
    not count: Python takes it for an empty package.
    """
    spec = util.find_spec(name)
    return spec is not None and spec.origin is not None


def _package(name: str) -> Path | None:
    """Return the directory that a top-level package is installed in, without importing it."""
    spec = util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _available_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass(frozen=True)
class Machine:
    """Ways to look at a machine; by default at this one. Tests substitute others.

    ``executable`` is the Python that would run the job, ``reports`` the directory that runs are written to, ``memory``
    gives bytes that are available. ``settings`` are the scenario's settings for its job's platform, None for nothing.
    """

    executable: Path = Path(sys.executable)
    python: tuple[int, int, int] = sys.version_info[:3]
    reports: Path = Path("reports")
    version: Callable[[str], str | None] = version_of
    has_module: Callable[[str], bool] = has_module
    package: Callable[[str], Path | None] = _package
    owners: Callable[[str], tuple[str, ...]] = owners_of
    which: Callable[..., str | None] = shutil.which
    cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0))
    memory: Callable[[], int] = _available_memory
    shared_memory: Path = Path("/dev/shm")
    user: Callable[[], int] = os.geteuid
    settings: object = None
    commands: Commands = field(default_factory=SystemCommands)

    def tool(self, name: str) -> str | None:
        """Return the path of a vendor's tool: on the PATH, or where its package installs it."""
        return self.which(name) or next((place for place in PLACES.get(name, ()) if os.access(place, os.X_OK)), None)
