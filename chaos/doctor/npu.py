"""The NPUs of a machine, and the vendor's tools for them."""

from __future__ import annotations

import os

from chaos.machine.ascend.quarantine import node_name, quarantined, what_to_do
from chaos.machine.linux.commands import PLACES
from chaos.machine.probe import Machine, Probe


def npu(machine: Machine) -> Probe:
    """Return whether a driver of NPUs is installed."""
    tool = machine.tool("npu-smi")
    return Probe("npu", bool(tool), tool or "no npu-smi", "" if tool else "no NPU driver; rehearsals use the CPU")


def hccn_tool(machine: Machine) -> Probe:
    """Return whether the tool that changes an NPU's network port is installed."""
    tool = machine.tool("hccn_tool")
    advice = "" if tool else "device faults need it; it comes with the NPU driver"
    return Probe("hccn_tool", bool(tool), tool or f"neither on the PATH nor at {PLACES['hccn_tool'][0]}", advice)


def quarantine(machine: Machine) -> Probe:
    """Return whether the cluster keeps a card of this machine out of training."""
    if machine.tool("npu-smi") is None:
        return Probe("quarantine", False, "no NPU", "there is no card that the cluster could quarantine")
    if machine.which("kubectl") is None:
        advice = "only kubectl shows whether the cluster has quarantined a card of this machine"
        return Probe("quarantine", False, "not known: no kubectl", advice)
    state = quarantined(node_name(os.environ), machine.commands)
    if not state.known:
        return Probe("quarantine", False, f"not known: {state.how}", "give kubectl the right to read ConfigMaps")
    if state.cards:
        return Probe("quarantine", False, f"ManuallySeparateNPU: {', '.join(state.cards)}", what_to_do(state.node))
    return Probe("quarantine", True, f"no card of {state.node} in ManuallySeparateNPU")
