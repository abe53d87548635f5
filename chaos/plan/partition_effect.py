"""Whether a partition is one that takes ranks from the job: by how long it lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.plan.parts.fault import PlannedFault

PARTITION = "partition"
"""The kind."""

SUSPENSION = "suspension"

UNNOTICED = 2.0
"""Seconds of a partition that nobody has to answer: with what TCP waits until it sends again it stays below the
shortest silence after which a rank counts as lost (5 s)."""


def partition_effect(effect: str, kind: str, parameters: Mapping[str, Any]) -> str:
    """The effect of a partition that is over before a heartbeat is missed: none. That of any other fault as it is."""
    seconds = parameters.get("seconds")
    brief = isinstance(seconds, int | float) and seconds <= UNNOTICED
    return "none" if kind == PARTITION and brief else effect


def comes_back(fault: PlannedFault) -> bool:
    """Whether it is a partition, brief or not, whose network is back before the launch has ended."""
    return fault.kind == PARTITION and "seconds" in fault.parameters


def ends_by_itself(fault: PlannedFault) -> bool:
    """Whether it is one by which ranks are lost, and after which they have to end by themselves."""
    return is_cut_off(fault) and comes_back(fault)


def is_cut_off(fault: PlannedFault) -> bool:
    """Whether it is a partition by which its ranks are lost to the controller."""
    return fault.kind == PARTITION and fault.effect == SUSPENSION
