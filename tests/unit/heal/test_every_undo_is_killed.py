"""The nightly kills go over every kind of undo: one that is new has to come with a scenario whose harness is killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import Popen

import pytest

from chaos.base.registry import registry
from chaos.faults.behaviours import Preparing
from chaos.faults.checkpoints.checkpoint_damage import RESTORE
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS
from chaos.machine.linux.process import identify
from chaos.platforms.nodes import END_NODES, NodePlatform
from chaos.run.prepare.registered import look_up_names
from chaos.scenario.models.scenario import Scenario
from tests.kit.killed_scenarios import ALWAYS, ELSEWHERE, IN_CONTAINERS, KILLED, Killed

pytestmark = pytest.mark.processes

Start = Callable[..., "Popen[bytes]"]
NEEDS_A_CHECKPOINT = {"truncate-checkpoint": {RESTORE}}


def of_kind(kind_name: str, victim: Victim) -> set[str]:
    """The undo actions that a fault of that kind needs."""
    kind = registry("faults").load(kind_name)
    if kind_name in NEEDS_A_CHECKPOINT:
        return NEEDS_A_CHECKPOINT[kind_name]
    assert victim.storage is not None
    before = kind.prepare_steps("f", victim.storage) if isinstance(kind, Preparing) else []
    return {step.action for step in (*before, *kind.undo_steps("f", [victim]))}


def has_nodes(scenario: Scenario) -> bool:
    """Whether its job lives on nodes that a platform makes and takes away."""
    return isinstance(look_up_names(scenario).platform.make(), NodePlatform)


@pytest.mark.parametrize("killed", [*KILLED, *IN_CONTAINERS], ids=lambda one: one.name)
def test_a_scenario_needs_the_undo_that_it_is_killed_for(
    killed: Killed, start: Start, token: str, tmp_path: Path
) -> None:
    storage = tmp_path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    scenario = killed.load().scenario
    rank = identify(start("sleep", "1000", run=token).pid)
    nodes = has_nodes(scenario)
    victim = Victim(
        rank=0,
        identity=replace(rank, node=1 if nodes else None),
        record=tmp_path / "history" / "train-rank_0-1.jsonl",
        storage=storage,
        fault="f",
        ranks=(0,),
    )
    try:
        needed = {action for fault in scenario.faults for action in of_kind(fault.kind, victim)}
    except FaultMissed as missed:
        pytest.skip(str(missed))
    assert killed.undo == needed | ({END_NODES} if nodes else set())


def test_every_undo_action_is_killed_or_it_is_told_where() -> None:
    killed = ALWAYS.union(*(cell.undo for cell in (*KILLED, *IN_CONTAINERS)))
    assert killed | set(ELSEWHERE) == set(UNDO_ACTIONS)
    assert killed & set(ELSEWHERE) == set()


def test_there_are_200_kills_where_there_is_no_engine_and_all_come_in_whole_parts() -> None:
    assert sum(cell.times for cell in KILLED) == 200
    assert all(cell.times % 4 == 0 for cell in (*KILLED, *IN_CONTAINERS))
