"""A plan before its outcome is known: the scenario, the layout of its job and the schedule of its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.plan.planned_kind import Kinds
from chaos.plan.platform_traits import PlatformTraits
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.layout import Layout
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Draft:
    """The subject of every rule of a plan.

    Args:
        scenario: the scenario, variables and matrix cell filled in.
        layout: its checked layout.
        groups: the replica groups of the layout.
        faults: its faults, targets and moments resolved.
        kinds: the kinds of its faults.
        traits: what this kind of job can observe and how it saves.
        platform: the traits of its platform.
    """

    scenario: Scenario
    layout: Layout
    groups: Sequence[tuple[int, ...]]
    faults: Sequence[Scheduled]
    kinds: Kinds
    traits: JobTraits
    platform: PlatformTraits
