"""Ranks that are cut off: whether a planned fault separates their nodes from the others, and for how long."""

from __future__ import annotations

from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault


def is_cut_off(fault: PlannedFault) -> bool:
    """Return whether its ranks are lost to the controller because the network to them is down."""
    return effect_of(fault.kind).parts_nodes and fault.effect.suspends


def comes_back(fault: PlannedFault) -> bool:
    """Return whether the network that it cuts, for a moment or longer, is back before the launch has ended."""
    return effect_of(fault.kind).parts_nodes and "seconds" in fault.parameters


def ends_by_itself(fault: PlannedFault) -> bool:
    """Return whether its ranks are lost to the controller, and have to end by themselves when the network is back."""
    return is_cut_off(fault) and comes_back(fault)
