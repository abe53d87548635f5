"""Every probe by its name, and which of them a part of a run asks for. A platform brings its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from chaos.doctor import control_groups, host, network, npu, packages, processes, storage, vendor_interface
from chaos.machine.probe import Machine, Probe
from chaos.platforms.kind import platform_kinds

PROBES: dict[str, Callable[[Machine], Probe]] = {
    "python": host.python,
    "pidfd": processes.pidfd,
    "subreaper": processes.subreaper,
    "reports": host.reports,
    "cores": host.cores,
    "memory": host.memory,
    "shm": host.shared_memory,
    "mindspore": packages.mindspore,
    "numpy": packages.numpy,
    "msrun": packages.msrun,
    "mindio_ttp": packages.mindio,
    vendor_interface.INTERFACE: vendor_interface.interface,
    vendor_interface.OWN_AGENT: vendor_interface.own_agent,
    "mindformers": packages.mindformers,
    "npu": npu.npu,
    "hccn_tool": npu.hccn_tool,
    "root": host.root,
    "quarantine": npu.quarantine,
    "mounts": storage.mounts,
    "loop": storage.loop,
    "fanotify": storage.fanotify,
    "cgroup-cpu": control_groups.cgroup,
    "network-namespaces": network.namespaces,
    "tbf": network.tbf,
    "impairment": network.impairment,
    "connection-reset": network.connection_reset,
    "permissions": storage.permissions,
    "memory-group": control_groups.memory_group,
}
"""The probes of this host by their names, in the order in which they are shown."""

BASE = ("python", "pidfd", "subreaper", "reports")
"""What every run needs."""


def all_probes() -> dict[str, Callable[[Machine], Probe]]:
    """Every probe by its name, in the order in which they are shown: those of this host, then those of platforms."""
    return PROBES | {
        name: look for kind in platform_kinds() for name, look in kind.probes.items() if name not in PROBES
    }


def probe(needs: Iterable[str], machine: Machine) -> list[Probe]:
    """Run the probes called ``needs``, each once, in the order of :func:`all_probes`. Raises KeyError otherwise."""
    wanted = set(needs)
    known = PROBES if wanted <= PROBES.keys() else all_probes()
    if unknown := wanted - known.keys():
        raise KeyError(f"no probe for {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [look(machine) for name, look in known.items() if name in wanted]


def needs_of(*parts: Any) -> tuple[str, ...]:
    """What a job kind, a platform or any other part says that it needs, after what every run needs."""
    return (*BASE, *(need for part in parts for need in getattr(part, "needs", ())))
