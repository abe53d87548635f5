"""Every probe by its name, and the probes that a part of a run needs. Platforms and job kinds add their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from typing import Protocol, TypeAlias

from chaos.jobs.kind import job_kinds
from chaos.machine.probe import BringsProbes, Machine, Probe
from chaos.platforms.kind import platform_kinds

Look: TypeAlias = Callable[[Machine], Probe]
Probes: TypeAlias = dict[str, Look]

INTERFACE, OWN_AGENT = "interface", "own agent"
"""Probes that compare MindSpore with the vendor's package; their findings do not concern the stand-in."""

_PLACES: Mapping[str, str] = {
    "python": "host:python",
    "command": "host:command",
    "pidfd": "processes:pidfd",
    "subreaper": "processes:subreaper",
    "reports": "host:reports",
    "cores": "host:cores",
    "memory": "host:memory",
    "shm": "host:shared_memory",
    "mindspore": "packages:mindspore",
    "numpy": "packages:numpy",
    "msrun": "packages:msrun",
    "mindio_ttp": "packages:mindio",
    INTERFACE: "vendor_interface:interface",
    OWN_AGENT: "vendor_interface:own_agent",
    "mindformers": "packages:mindformers",
    "npu": "npu:npu",
    "hccn_tool": "npu:hccn_tool",
    "root": "host:root",
    "quarantine": "npu:quarantine",
    "mounts": "storage:mounts",
    "loop": "storage:loop",
    "fanotify": "storage:fanotify",
    "cgroup-cpu": "control_groups:cgroup",
    "network-namespaces": "network:namespaces",
    "tbf": "network:tbf",
    "impairment": "network:impairment",
    "connection-reset": "network:connection_reset",
    "permissions": "storage:permissions",
    "memory-group": "control_groups:memory_group",
}
"""The place of each need's probe in this room. Its module is imported on use: a run needs few of them."""


def _placed(place: str) -> Look:
    def look(machine: Machine) -> Probe:
        probe: Look = resolve_name(f"chaos.doctor.{place}")
        return probe(machine)

    return look


PROBES: Probes = {need: _placed(place) for need, place in _PLACES.items()}
"""The probes of this host by their names, in the order in which they are shown."""

BASE = ("python", "pidfd", "subreaper", "reports")
"""The needs of every run."""


def all_probes() -> Probes:
    """Return every probe by its name, in the order in which they are shown: of this host, platforms, job kinds."""
    return _brought_by(job_kinds(), _brought_by(platform_kinds(), PROBES))


def _brought_by(kinds: Iterable[BringsProbes], known: Probes) -> Probes:
    """Return the known probes, and then those that kinds add under other names."""
    brought = (item for kind in kinds for item in kind.probes.items())
    return {**known, **{name: look for name, look in brought if name not in known}}


def probe(needs: Iterable[str], machine: Machine) -> list[Probe]:
    """Run the probes called ``needs``, each once, in the order of :func:`all_probes`. Raises KeyError for others."""
    requested = set(needs)
    known = PROBES
    for kinds in (platform_kinds, job_kinds):
        if not requested <= known.keys():
            known = _brought_by(kinds(), known)
    if unknown := requested - known.keys():
        raise KeyError(f"no probe for {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [look(machine) for name, look in known.items() if name in requested]


class Needing(Protocol):
    """A part of a run that names the probes that it needs: a job kind, a platform, a fault kind."""

    @property
    def needs(self) -> tuple[str, ...]: ...


def needs_of(*parts: Needing) -> tuple[str, ...]:
    """Return the needs of parts of a run, after the needs of every run."""
    return (*BASE, *(need for part in parts for need in part.needs))
