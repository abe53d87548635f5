"""The effect of a planned fault, as the family of its kind declares it, and what follows from that for its ranks."""

from __future__ import annotations

from typing import cast

from chaos.base.registry import registry
from chaos.plan.effect import NONE, Effect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.schedule import SUSPENSION


def effect_of(kind: str) -> Effect:
    """The effect of a kind; none of one that no family here has, which its own proof alone can judge."""
    kinds = registry("kinds")
    return cast(Effect, kinds.load(kind).effect) if kind in kinds.points else NONE


def is_cut_off(fault: PlannedFault) -> bool:
    """Whether its ranks are lost to the controller because the network to them is taken."""
    return effect_of(fault.kind).parts_nodes and fault.effect == SUSPENSION


def comes_back(fault: PlannedFault) -> bool:
    """Whether the network that it takes, for a moment or longer, is back before the launch has ended."""
    return effect_of(fault.kind).parts_nodes and "seconds" in fault.parameters


def ends_by_itself(fault: PlannedFault) -> bool:
    """Whether its ranks are lost to the controller, and have to end by themselves when the network is back."""
    return is_cut_off(fault) and comes_back(fault)
