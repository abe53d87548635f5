"""A machine as the probes see it, and what a probe says."""

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
    """What one probe saw. ``advice`` says what to do when it is missing, and is empty when it is not."""

    need: str
    ok: bool
    seen: str
    advice: str = ""


class BringsProbes(Protocol):
    """What has needs of its own, and the probes that look for them, by name."""

    @property
    def probes(self) -> Mapping[str, Callable[[Machine], Probe]]:
        """Looks for each. Changes nothing."""


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None where there is none of that name.

    Only the first lines of its metadata are of use here, and to parse the whole text takes milliseconds.
    """
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    told = re.search(r"^Version: *(\S+)$", found.read_text("METADATA") or "", re.MULTILINE)
    return found.version if told is None else told[1]


def has_module(name: str) -> bool:
    """Return whether a top-level module can be imported; finding it does not import it.

    A directory of that name without a module in it, such as that of a sample beside which a command is given, is none:
    Python takes it for an empty package.
    """
    found = util.find_spec(name)
    return found is not None and found.origin is not None


def _package(name: str) -> Path | None:
    """Return the directory that a top-level package is installed in; finding it does not import it."""
    found = util.find_spec(name)
    return Path(found.origin).parent if found is not None and found.origin else None


def _available_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass(frozen=True)
class Machine:
    """Ways to look at a machine; by default at this one. Tests put others in their place.

    ``executable`` is the Python that would run the job, ``reports`` the directory that runs are written to, ``memory``
    gives bytes that are available. ``settings`` is what the scenario says for its job's platform, None for nothing.
    """

    executable: Path = Path(sys.executable)
    python: tuple[int, int, int] = sys.version_info[:3]
    reports: Path = Path("reports")
    version: Callable[[str], str | None] = version_of
    has_module: Callable[[str], bool] = has_module
    package: Callable[[str], Path | None] = _package
    which: Callable[..., str | None] = shutil.which
    cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0))
    memory: Callable[[], int] = _available_memory
    shared_memory: Path = Path("/dev/shm")
    user: Callable[[], int] = os.geteuid
    settings: object = None
    commands: Commands = field(default_factory=SystemCommands)

    def tool(self, name: str) -> str | None:
        """Return where a tool of the vendor is: on the PATH, or where its package puts it."""
        return self.which(name) or next((place for place in PLACES.get(name, ()) if os.access(place, os.X_OK)), None)
