"""What networks of the run's own, and limits on them, need."""

from __future__ import annotations

from chaos.platforms.commands import CommandError
from chaos.run.machine.base import Machine, Probe


def namespaces(machine: Machine) -> Probe:
    """Whether networks can be made, with pairs of interfaces."""
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


def tbf(machine: Machine) -> Probe:
    """Whether the rate of an interface can be limited."""
    try:
        limit = ("dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "1s")
        machine.commands("unshare", "--net", "--", "tc", "qdisc", "add", *limit).checked()
    except CommandError as error:
        return Probe("tbf", False, str(error), "the kernel's queueing discipline tbf (sch_tbf) and root are needed")
    return Probe("tbf", True, "works")
