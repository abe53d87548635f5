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

from chaos.beside.slow_opens import watch_opens
from chaos.platforms.ascend.quarantine import node_name, quarantined, what_to_do
from chaos.platforms.cgroup import cpu_hierarchy
from chaos.platforms.commands import PLACES, CommandError, Commands, SystemCommands
from chaos.platforms.memory_group import NoMemoryGroup, memory_groups
from chaos.platforms.mounts import may_mount
from chaos.platforms.permissions import CAP_LINUX_IMMUTABLE, has_capability
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
        return self.which(name) or next((one for one in PLACES.get(name, ()) if os.access(one, os.X_OK)), None)


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


def _loop(machine: Machine) -> Probe:
    tool = machine.tool("mkfs.ext4")
    if tool is None:
        return Probe("loop", False, "no mkfs.ext4", "install e2fsprogs: a fault of a disk makes one in a file")
    if not Path("/dev/loop-control").exists() or not may_mount():
        advice = (
            "a fault of a disk needs loop devices and root: load the module loop, or give the container its devices"
        )
        return Probe("loop", False, "no loop devices", advice)
    return Probe("loop", True, "loop devices and mkfs.ext4")


def _fanotify(machine: Machine) -> Probe:
    try:
        os.close(watch_opens(str(machine.shared_memory)))
    except OSError as error:
        advice = "slow storage is made by the kernel's fanotify: root and CONFIG_FANOTIFY_ACCESS_PERMISSIONS are needed"
        return Probe("fanotify", False, str(error), advice)
    return Probe("fanotify", True, "opens can be held")


def _cgroup(_: Machine) -> Probe:
    found = cpu_hierarchy()
    if found is None:
        return Probe("cgroup-cpu", False, "none is mounted", "a quota needs the control group cpu: mount it")
    if not os.access(found.mount, os.W_OK):
        return Probe("cgroup-cpu", False, f"{found.mount} cannot be written", "a quota of processor time needs root")
    return Probe("cgroup-cpu", True, f"version {found.version} at {found.mount}")


def _namespaces(machine: Machine) -> Probe:
    absent = [tool for tool in ("unshare", "nsenter", "ip", "tc", "sysctl") if machine.tool(tool) is None]
    if absent:
        advice = "install iproute2, util-linux and procps: nodes on this host get networks of their own by them"
        return Probe("network-namespaces", False, f"no {', '.join(absent)}", advice)
    try:
        pair = ("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
        machine.commands("unshare", "--net", "--", *pair).checked()
    except CommandError as error:
        return Probe("network-namespaces", False, str(error), "a network of the run's own needs root and veth")
    return Probe("network-namespaces", True, "can be made, with veth")


def _tbf(machine: Machine) -> Probe:
    try:
        limit = ("dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "1s")
        machine.commands("unshare", "--net", "--", "tc", "qdisc", "add", *limit).checked()
    except CommandError as error:
        return Probe("tbf", False, str(error), "the kernel's queueing discipline tbf (sch_tbf) and root are needed")
    return Probe("tbf", True, "works")


def _permissions(machine: Machine) -> Probe:
    if machine.user() != 0:
        return Probe("permissions", True, f"user {machine.user()}, whom a mode keeps out")
    if has_capability("self", CAP_LINUX_IMMUTABLE):
        return Probe("permissions", True, "root, whom an immutable directory keeps out")
    advice = "no mode keeps root out, and making a directory immutable needs CAP_LINUX_IMMUTABLE"
    return Probe("permissions", False, "root without CAP_LINUX_IMMUTABLE", advice)


def _memory_group(_: Machine) -> Probe:
    try:
        found = memory_groups()
    except (NoMemoryGroup, OSError) as error:
        advice = "an OOM kill needs a control group with a limit: run as root, or in a group that is delegated"
        return Probe("memory-group", False, str(error), advice)
    return Probe("memory-group", True, f"version {found.version} in {found.parent}")


def _docker(machine: Machine) -> Probe:
    if machine.version("docker") is None:
        return Probe("docker", False, "not installed", "pip install 'chaos-ascend[docker]'")
    from chaos.platforms.base import PlatformError
    from chaos.platforms.docker.engine import connect

    try:
        client = connect(None)
    except PlatformError:
        advice = "start a Docker engine; DOCKER_HOST or cluster.docker.engine says where it is"
        return Probe("docker", False, "no engine answers", advice)
    version = client.version().get("Version")
    client.close()
    return Probe("docker", True, f"engine {version}")


def _kubernetes(_: Machine) -> Probe:
    if util.find_spec("kubernetes") is None:
        return Probe("kubernetes", False, "its client is not installed", "pip install 'chaos-ascend[kubernetes]'")
    from chaos.platforms.base import PlatformError
    from chaos.platforms.kubernetes.api import connect

    try:
        server = connect(None).client.configuration.host
    except PlatformError as error:
        return Probe("kubernetes", False, str(error), "set KUBECONFIG to a file whose current context is the cluster's")
    return Probe("kubernetes", True, f"the client, for {server}")


def _ssh(machine: Machine) -> Probe:
    version = machine.version("paramiko")
    if version is None:
        return Probe("ssh", False, "not installed", "pip install 'chaos-ascend[ssh]'")
    return Probe("ssh", True, f"paramiko {version}")


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
    "loop": _loop,
    "fanotify": _fanotify,
    "cgroup-cpu": _cgroup,
    "network-namespaces": _namespaces,
    "tbf": _tbf,
    "permissions": _permissions,
    "memory-group": _memory_group,
    "docker": _docker,
    "ssh": _ssh,
    "kubernetes": _kubernetes,
}
"""Every probe by its name, in the order in which they are shown."""

BASE = ("python", "pidfd", "subreaper", "reports")
"""What every run needs."""


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
