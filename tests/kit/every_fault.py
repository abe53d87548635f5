"""Which shipped scenario shows each registered fault kind: the smallest one, of plain ranks where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chaos.base.registry import registry
from chaos.plan.topology.targets import BESIDE_RANKS
from chaos.run.prepare.prepare import known_names
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario
from tests.kit.shipped import SHIPPED

ON_HARDWARE = {
    "device-reset": "npu-smi resets a real card",
    "node-reboot": "it takes the machine, so it needs a platform with other hosts",
    "npu-link-down": "hccn_tool takes the link of a real card down",
}
"""Kinds that nothing here can show, and why; their logic is tested against recorded outputs of the tools."""


@dataclass(frozen=True)
class Shown:
    """A cell of a scenario in which the fault is made."""

    path: Path
    cell: str
    scenario: Scenario

    @property
    def fault_ids(self) -> tuple[str, ...]:
        """For a test that fails."""
        return tuple(fault.id or fault.kind for fault in self.scenario.faults)


def kinds() -> list[str]:
    """Every registered fault kind."""
    return sorted(registry("faults").some_names())


def in_clusters() -> list[str]:
    """The kinds that only a cluster can have; tests/cluster/test_every_cluster_fault.py shows them."""
    shown = shown_by()
    return [kind for kind in kinds() if kind in shown and shown[kind].scenario.cluster.platform == "kubernetes"]


@cache
def shown_by() -> dict[str, Shown]:
    """The cell for each kind that has one."""
    found: dict[str, tuple[tuple[bool, bool, int, int, str], Shown]] = {}
    names = known_names()
    for path in iter_scenarios([SHIPPED]):
        for cell in load_scenario(path, names=names).cells:
            scenario = cell.scenario
            if scenario.job.device == "Ascend":
                continue
            order = (scenario.finding is not None, scenario.job.kind != "plain", len(scenario.faults))
            size = (*order, scenario.cluster.ranks, f"{path}{cell.name}")
            for kind in {fault.kind for fault in scenario.faults if fault.target.role not in BESIDE_RANKS}:
                if kind not in found or size < found[kind][0]:
                    found[kind] = (size, Shown(path, cell.name, scenario))
    return {kind: shown for kind, (_, shown) in found.items()}
