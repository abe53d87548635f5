"""Ranks that are cut off or stopped: whether the network between nodes is down, and whether the silence ends."""

from __future__ import annotations

from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault


def is_cut_off(fault: PlannedFault) -> bool:
    """Return whether its ranks are lost to the controller because the network to them is down."""
    return effect_of(fault.kind).parts_nodes and fault.effect.suspends


def comes_back(fault: PlannedFault) -> bool:
    """Return whether the network, or the process that it stops, is back before the launch has ended."""
    effect = effect_of(fault.kind)
    return (effect.parts_nodes or effect.stopped) and "seconds" in fault.parameters


def ends_by_itself(fault: PlannedFault) -> bool:
    """Return whether its ranks are lost to the controller, and have to end by themselves when the network is back."""
    return is_cut_off(fault) and comes_back(fault)
