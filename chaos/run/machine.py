"""What this machine can run: one small probe for each thing that a job or a platform may need.

Probes look without changing anything and without importing MindSpore. A job kind or platform names what it needs in
its attribute ``needs``, a tuple of keys of :data:`PROBES`.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Any

from chaos.platforms.ascend.quarantine import node_name, quarantined, what_to_do
from chaos.platforms.commands import PLACES, Commands, SystemCommands
from chaos.platforms.mounts import may_mount
from chaos.run.interface.fit import disagreements
from chaos.run.interface.offered import offered_by
from chaos.run.interface.wanted import wanted_by

MINDSPORE = ((2, 7), (2, 11))
"""MindSpore versions that are supported: from the first, up to and without the second."""

INTERFACE, OWN_AGENT = "interface", "own agent"
"""Probes that compare MindSpore with the vendor's package; what they find does not concern the stand-in."""

_PR_GET_CHILD_SUBREAPER = 37
_GIB = 1024**3
_DEEP_SECONDS = 120.0


@dataclass(frozen=True)
class Probe:
    """What one probe saw. ``advice`` says what to do when it is missing, and is empty when it is not."""

    need: str
    ok: bool
    seen: str
    advice: str = ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _has_module(name: str) -> bool:
    return util.find_spec(name) is not None


def _package(name: str) -> Path | None:
    """The directory that a top-level package is installed in; finding it does not import it."""
    found = util.find_spec(name)
    return Path(found.origin).parent if found is not None and found.origin else None


def _available_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass(frozen=True)
class Machine:
    """Ways to look at a machine; by default at this one. Tests put others in their place.

    ``executable`` is the Python that would run the job, ``reports`` the directory that runs are written to, ``memory``
    gives bytes that are available.
    """

    executable: Path = Path(sys.executable)
    python: tuple[int, int, int] = sys.version_info[:3]
    reports: Path = Path("reports")
    version: Callable[[str], str | None] = _version
    has_module: Callable[[str], bool] = _has_module
    package: Callable[[str], Path | None] = _package
    which: Callable[..., str | None] = shutil.which
    cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0))
    memory: Callable[[], int] = _available_memory
    shared_memory: Path = Path("/dev/shm")
    user: Callable[[], int] = os.geteuid
    commands: Commands = field(default_factory=SystemCommands)

    def tool(self, name: str) -> str | None:
        """Where a tool of the vendor is: on the PATH, or where its package puts it."""
        return self.which(name) or next((one for one in PLACES[name] if os.access(one, os.X_OK)), None)


def _python(machine: Machine) -> Probe:
    text = ".".join(map(str, machine.python))
    if machine.python >= (3, 10):
        return Probe("python", True, text)
    return Probe("python", False, text, "chaos needs Python 3.10 or later")


def _cores(machine: Machine) -> Probe:
    cores = machine.cores()
    return Probe("cores", cores >= 2, str(cores), "" if cores >= 2 else "with one core, runs may pass their deadlines")


def _memory(machine: Machine) -> Probe:
    free = machine.memory()
    enough = free >= 2 * _GIB
    return Probe("memory", enough, f"{free / _GIB:.1f} GiB available", "" if enough else "four ranks need about 2 GiB")


def _mindspore(machine: Machine) -> Probe:
    version = machine.version("mindspore")
    first, end = (".".join(map(str, part)) for part in MINDSPORE)
    wanted = f"chaos supports MindSpore from {first} up to and without {end}"
    install = "install it with `pip install 'chaos-ascend[mindspore]'`, or your own build for Ascend"
    if version is None:
        if machine.has_module("mindspore"):
            return Probe("mindspore", False, "a module without metadata", f"{wanted}; reinstall it with pip")
        return Probe("mindspore", False, "not installed", f"{install}; {wanted}")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if MINDSPORE[0] <= numbers < MINDSPORE[1]:
        return Probe("mindspore", True, version)
    return Probe("mindspore", False, version, wanted)


def _numpy(machine: Machine) -> Probe:
    version = machine.version("numpy")
    if version is None:
        return Probe("numpy", False, "not installed", "pip install 'numpy<2'")
    if int(version.split(".")[0]) < 2:
        return Probe("numpy", True, version)
    return Probe("numpy", False, version, "numpy 2 breaks MindSpore's Tensor.reshape; pip install 'numpy<2'")


def _msrun(machine: Machine) -> Probe:
    # msrun starts the `python` of the PATH, so only the one that belongs to this Python is of use.
    found = machine.which("msrun", path=str(machine.executable.parent))
    if found:
        return Probe("msrun", True, found)
    other = machine.which("msrun")
    seen = f"not beside {machine.executable}" + (f" (there is {other})" if other else "")
    return Probe("msrun", False, seen, "install MindSpore into the environment that chaos is installed in")


def _mindio(machine: Machine) -> Probe:
    version = machine.version("mindio_ttp")
    if version or machine.has_module("mindio_ttp"):
        return Probe("mindio_ttp", True, version or "a module without metadata")
    return Probe("mindio_ttp", False, "not installed", "it comes with the vendor's MindCluster; the stand-in is used")


def _interface(machine: Machine) -> Probe:
    return _fit(INTERFACE, machine, own_agent=False)


def _own_agent(machine: Machine) -> Probe:
    return _fit(OWN_AGENT, machine, own_agent=True)


def _fit(need: str, machine: Machine, *, own_agent: bool) -> Probe:
    """Whether MindSpore's code and the vendor's package, as installed, call each other as both expect it."""
    mindspore, mindio = machine.package("mindspore"), machine.package("mindio_ttp")
    if mindspore is None or mindio is None:
        return Probe(need, True, "only the stand-in is there to be called")
    versions = [f"{name} {machine.version(name) or 'of unknown version'}" for name in ("mindspore", "mindio_ttp")]
    pair = " and ".join(versions)
    wanted = wanted_by(mindspore)
    if not wanted.uses:
        seen = f"{mindspore} has no call of mindio_ttp that could be compared"
        return Probe(need, False, seen, "repair MindSpore, or run with --sdk standin")
    found = [one.text for one in disagreements(wanted, offered_by(mindio)) if one.own_agent is own_agent]
    if not found:
        return Probe(need, True, f"{pair} agree")
    advice = "install MindSpore and MindIO TFT of one release, or run with --sdk standin"
    if own_agent:
        advice = "ARF needs the cluster's agent here (job.agent: true), since MindSpore's own cannot take its place"
    return Probe(need, False, f"{pair} disagree: {'; '.join(found)}", advice)


def _mindformers(machine: Machine) -> Probe:
    version = machine.version("mindformers")
    if version or machine.has_module("mindformers"):
        return Probe("mindformers", True, version or "a module without metadata")
    advice = (
        "pip install 'chaos-ascend[mindformers]', then its wheel with `pip install --no-deps mindformers` "
        "(docs/mindformers.md), or name a checkout in the scenario (job.checkout)"
    )
    return Probe("mindformers", False, "not installed", advice)


def _npu(machine: Machine) -> Probe:
    found = machine.tool("npu-smi")
    return Probe("npu", bool(found), found or "no npu-smi", "" if found else "no NPU driver; rehearsals use the CPU")


def _hccn_tool(machine: Machine) -> Probe:
    found = machine.tool("hccn_tool")
    advice = "" if found else "it comes with the NPU driver; faults of a device need it"
    return Probe("hccn_tool", bool(found), found or f"neither on the PATH nor at {PLACES['hccn_tool'][0]}", advice)


def _root(machine: Machine) -> Probe:
    user = machine.user()
    advice = "" if user == 0 else "hccn_tool and npu-smi change a device for root only; chaos itself changes no user"
    return Probe("root", user == 0, "yes" if user == 0 else f"user {user}", advice)


def _quarantine(machine: Machine) -> Probe:
    if machine.tool("npu-smi") is None:
        return Probe("quarantine", False, "no NPU", "there is no card that the cluster could quarantine")
    if machine.which("kubectl") is None:
        advice = "whether the cluster has quarantined a card of this machine is seen with kubectl only"
        return Probe("quarantine", False, "not known: no kubectl", advice)
    found = quarantined(node_name(os.environ), machine.commands)
    if not found.known:
        return Probe("quarantine", False, f"not known: {found.how}", "give kubectl the right to read ConfigMaps")
    if found.cards:
        return Probe("quarantine", False, f"ManuallySeparateNPU: {', '.join(found.cards)}", what_to_do(found.node))
    return Probe("quarantine", True, f"no card of {found.node} in ManuallySeparateNPU")


def _shared_memory(machine: Machine) -> Probe:
    path = machine.shared_memory
    if not path.is_dir() or not os.access(path, os.W_OK):
        return Probe("shm", False, f"{path} cannot be written", f"mount a tmpfs at {path}")
    return Probe("shm", True, f"{path}, {shutil.disk_usage(path).free / _GIB:.1f} GiB free")


def _reports(machine: Machine) -> Probe:
    path = machine.reports.absolute()
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Probe("reports", True, str(path))
    return Probe("reports", False, f"{path} cannot be written", "choose another directory with --reports")


def _pidfd(_: Machine) -> Probe:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return Probe("pidfd", False, str(error), "Linux 5.3 or later is needed to signal a process without a race")
    return Probe("pidfd", True, "works")


def _subreaper(_: Machine) -> Probe:
    value = ctypes.c_int()
    try:
        status = ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    except (AttributeError, OSError) as error:
        return Probe("subreaper", False, str(error), "Linux is needed to collect the processes of a job")
    if status != 0:
        return Probe("subreaper", False, os.strerror(ctypes.get_errno()), "a sandbox forbids prctl; allow it")
    return Probe("subreaper", True, "works")


def _mounts(_: Machine) -> Probe:
    if may_mount():
        return Probe("mounts", True, "allowed")
    advice = "storage faults mount a file system over the checkpoint directory: run as root, or with CAP_SYS_ADMIN"
    return Probe("mounts", False, "not allowed", advice)


def _later(name: str) -> Callable[[Machine], Probe]:
    def probe(_: Machine) -> Probe:
        return Probe(name, False, "not in this version", f"the platform {name} comes with a later version of chaos")

    return probe


PROBES: dict[str, Callable[[Machine], Probe]] = {
    "python": _python,
    "pidfd": _pidfd,
    "subreaper": _subreaper,
    "reports": _reports,
    "cores": _cores,
    "memory": _memory,
    "shm": _shared_memory,
    "mindspore": _mindspore,
    "numpy": _numpy,
    "msrun": _msrun,
    "mindio_ttp": _mindio,
    INTERFACE: _interface,
    OWN_AGENT: _own_agent,
    "mindformers": _mindformers,
    "npu": _npu,
    "hccn_tool": _hccn_tool,
    "root": _root,
    "quarantine": _quarantine,
    "mounts": _mounts,
    "docker": _later("docker"),
    "ssh": _later("ssh"),
    "kubernetes": _later("kubernetes"),
}
"""Every probe by its name, in the order in which they are shown."""

BASE = ("python", "pidfd", "subreaper", "reports")
"""What every run needs."""

LATER = ("docker", "ssh", "kubernetes")
"""Platforms of later versions."""


def probe(needs: Iterable[str], machine: Machine) -> list[Probe]:
    """Run the probes called ``needs``, each once, in the order of :data:`PROBES`. Raises KeyError otherwise."""
    wanted = set(needs)
    if unknown := wanted - set(PROBES):
        raise KeyError(f"no probe for {', '.join(sorted(unknown))}; there are {', '.join(PROBES)}")
    return [PROBES[name](machine) for name in PROBES if name in wanted]


def needs_of(*parts: Any) -> tuple[str, ...]:
    """What a job kind, a platform or any other part says that it needs, after what every run needs."""
    return (*BASE, *(need for part in parts for need in getattr(part, "needs", ())))


def import_mindspore(machine: Machine) -> Probe:
    """Import MindSpore in a process of its own: slower than the metadata, but it also finds a broken installation."""
    command = [str(machine.executable), "-c", "import mindspore; print(mindspore.__version__)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DEEP_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Probe("mindspore import", False, f"took more than {_DEEP_SECONDS:g} s", "look for a hanging driver")
    if done.returncode == 0:
        return Probe("mindspore import", True, done.stdout.strip().rpartition("\n")[2])
    last = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
    return Probe("mindspore import", False, last, f"repair MindSpore: {' '.join(command[:2])} 'import mindspore'")
