"""Shared by the tests of the plan: builds plans from short descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.plan.build import build_plan
from chaos.plan.effect import effect_of
from chaos.plan.job_effect import (
    ABNORMAL,
    COMMUNICATION,
    DAMAGED,
    DEATH,
    LOST_FILES,
    MEMORY,
    NONE,
    PAUSE,
    RECORD,
    RENAMED,
    SLOW_DEATH,
    STORAGE_DENIED,
    STORAGE_ERROR,
    STORAGE_FULL,
    STORAGE_GONE,
    STORAGE_READ_ONLY,
    SUSPENSION,
    TERMINATION,
    TIMED,
    VOLUME_GONE,
    JobEffect,
)
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.platform_traits import SEVERAL_HOSTS, PlatformTraits
from chaos.plan.points import PHASE_ORDER
from chaos.plan.rules.parameters import Parameters
from chaos.plan.rules.required_place import RequiredPlace
from chaos.plan.source import Source
from chaos.plan.traits import JobTraits
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.scenario import Scenario

EFFECTS = {
    "kill": DEATH,
    "stop": SUSPENSION,
    "choke": SLOW_DEATH,
    "partition": SUSPENSION,
    "terminate": TERMINATION,
    "full": STORAGE_FULL,
    "read-only": STORAGE_READ_ONLY,
    "broken": STORAGE_ERROR,
    "gone": STORAGE_GONE,
    "denied": STORAGE_DENIED,
    "volume": VOLUME_GONE,
    "mark": NONE,
    "uce": MEMORY,
    "hcce": COMMUNICATION,
    "link": COMMUNICATION,
    "npu-link-down": COMMUNICATION,
    "ecc": TIMED,
    "pause": PAUSE,
    "lose": LOST_FILES,
    "spike": ABNORMAL,
    "corrupt": JobEffect("wrong values"),
    "truncate-checkpoint": DAMAGED,
    "flip-checkpoint": DAMAGED,
    "stale-checkpoint": DAMAGED,
    "remove-checkpoint": DAMAGED,
    "damage-record": RECORD,
    "rename-checkpoint": RENAMED,
}


TRAITS = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints")


class KnownLines:
    """Positions from a table; a path that is not in it has that of the nearest path around it."""

    def __init__(self, table: Mapping[str, int]) -> None:
        self._table = table

    def nearest(self, path: str) -> tuple[int, int] | None:
        words = path.split(".")
        paths = (".".join(words[:length]) for length in range(len(words), 0, -1))
        return next(((self._table[known], 3) for known in paths if known in self._table), None)


@dataclass
class Planner:
    """Builds plans. What is not given is a sound job of 4 data-parallel ranks that trains 10 steps under TTP."""

    traits: JobTraits = field(
        default_factory=lambda: JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints")
    )
    lines: Mapping[str, int] = field(default_factory=dict)
    drawn: list[int] = field(default_factory=list)
    effects: Mapping[str, JobEffect] = field(default_factory=lambda: EFFECTS)
    parameters: Mapping[str, Parameters] = field(default_factory=dict)
    required_place: Mapping[str, RequiredPlace] = field(default_factory=dict)
    lasting: frozenset[str] = frozenset()
    platform: PlatformTraits = SEVERAL_HOSTS

    def __call__(
        self,
        *faults: Mapping[str, Any],
        cluster: Mapping[str, Any] | None = None,
        job: Mapping[str, Any] | None = None,
        expect: Mapping[str, Any] | None = None,
        **other: Any,
    ) -> Plan:
        scenario = Scenario.model_validate(
            {
                "chaos": 1,
                "name": "example",
                "cluster": {"ranks": 4} if cluster is None else cluster,
                "job": {"steps": 10, "protection": ("TTP",), **(job or {})},
                "faults": faults,
                "expect": expect or {},
                **other,
            }
        )
        return build_plan(
            scenario,
            Source("example.yaml", KnownLines(self.lines)),
            traits=self.traits,
            kinds={name: self._kind(name) for name in self.effects},
            draw_seed=self._draw_seed,
            platform=self.platform,
        )

    def _kind(self, name: str) -> PlannedKind:
        return PlannedKind(
            self.effects[name],
            parameters=self.parameters.get(name),
            required_place=self.required_place.get(name),
            lasting=name in self.lasting,
            on_rank=effect_of(name),
        )

    def refused(self, *faults: Mapping[str, Any], **rest: Any) -> str:
        """The text of the error that a scenario ends with."""
        with pytest.raises(ScenarioError) as error:
            self(*faults, **rest)
        return str(error.value)

    def _draw_seed(self) -> int:
        self.drawn.append(len(self.drawn) + 7)
        return self.drawn[-1]


@pytest.fixture
def plan() -> Planner:
    """A planner with every phase observable and no known lines."""
    return Planner()


SHARDED = {
    "ranks": 8,
    "parallel": {"data_parallel": 8, "enable_parallel_optimizer": True, "optimizer_weight_shard_size": 4},
}
"""The vendor's example: eight workers, the optimizer state sliced over four."""


@pytest.fixture
def sharded() -> dict[str, Any]:
    """The cluster of the vendor's example with eight workers."""
    return dict(SHARDED)
