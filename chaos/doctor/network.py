"""The needs of a run's own networks, and of limits on them."""

from __future__ import annotations

import os

from chaos.machine.linux.commands import CommandError
from chaos.machine.linux.net.connections import refusal
from chaos.machine.probe import Machine, Probe


def namespaces(machine: Machine) -> Probe:
    """Return whether networks can be made, with pairs of interfaces."""
    absent = [tool for tool in ("unshare", "nsenter", "ip", "tc", "sysctl") if machine.tool(tool) is None]
    if absent:
        advice = "install iproute2, util-linux and procps: they give the nodes on this host networks of their own"
        return Probe("network-namespaces", False, f"no {', '.join(absent)}", advice)
    try:
        pair = ("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
        machine.commands("unshare", "--net", "--", *pair).checked()
    except CommandError as error:
        return Probe("network-namespaces", False, str(error), "a network of the run's own needs root and veth")
    return Probe("network-namespaces", True, "can be made, with veth")


def impairment(machine: Machine) -> Probe:
    """Return the means to delay or drop packets: netem, or a relay at a device of the run's own."""
    try:
        delay = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        machine.commands("unshare", "--net", "--", *delay).checked()
    except CommandError:
        try:
            os.close(os.open("/dev/net/tun", os.O_RDWR))
        except OSError as error:
            advice = "the kernel's netem (sch_netem), or /dev/net/tun for a relay, and root are needed"
            return Probe("impairment", False, f"no netem, and /dev/net/tun: {error.strerror}", advice)
        return Probe("impairment", True, "a relay of the run's own: the kernel has no netem")
    return Probe("impairment", True, "the kernel's netem")


def connection_reset(machine: Machine) -> Probe:
    """Return whether the kernel can reset connections on request."""
    del machine
    if (why := refusal()) is not None:
        advice = "the kernel must be built with CONFIG_INET_DIAG_DESTROY, and root is needed"
        return Probe("connection-reset", False, why, advice)
    return Probe("connection-reset", True, "by the kernel (sock_diag)")


def tbf(machine: Machine) -> Probe:
    """Return whether the rate of an interface can be limited."""
    try:
        limit = ("dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "1s")
        machine.commands("unshare", "--net", "--", "tc", "qdisc", "add", *limit).checked()
    except CommandError as error:
        return Probe("tbf", False, str(error), "the kernel's queueing discipline tbf (sch_tbf) and root are needed")
    return Probe("tbf", True, "works")
