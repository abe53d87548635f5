"""Whatever puts a fault of a kind back is registered, does no harm where nothing was made, and may run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.faults.behaviours import Preparing
from chaos.faults.kind import FaultMissed
from chaos.faults.registered import fault_kind
from chaos.heal.undo import after_processes
from chaos.heal.undo_of_families import attached_form
from chaos.history.ledger import UndoStep
from chaos.plan.job_effect import DEATH, TERMINATION
from chaos.store.directory import RunDirectory, create_run
from tests.contract.page import rows, sections
from tests.contract.stage import RANK, Stage
from tests.contract.stages import Routed, Surroundings, routed, stage_of
from tests.kit.every_fault import kinds
from tests.unit.platforms.kubernetes.standin_api import Cluster

pytestmark = pytest.mark.processes

NOT_SHOWN = {
    "device-reset": "a chip that was reset is as it was",
    "pause": "it is the SDK's controller that lets the ranks wait",
}
"""Kinds of whose act nothing is seen here, and why."""

ENDS = (DEATH, TERMINATION)
"""Effects after which there is nobody to put anything back of."""

IN_RUNNING_JOBS = [kind for kind in kinds() if fault_kind(kind).from_outside and fault_kind(kind).effect not in ENDS]
"""Kinds that are made in such a job as in any other, and leave something to put back."""

STAYS = {"lose-checkpoint": {"files"}}
"""What is to stay as the fault has left it, by kind."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = create_run(tmp_path / "reports", "undo")
    (made.path / "job").mkdir()
    yield made
    made.lock.release()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Cluster]:
    """Makes a cluster that undo steps reach."""

    def make() -> Cluster:
        made = Cluster()
        made.reached(monkeypatch)
        return made

    return make


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Routed | None]]:
    """Makes a network between two nodes when it is asked for first."""
    with ExitStack() as held:
        yield cache(lambda: held.enter_context(routed(tmp_path_factory.mktemp("network"))))


@pytest.fixture
def stage(
    kind: str, run: RunDirectory, cluster: Callable[[], Cluster], network: Callable[[], Routed | None]
) -> Iterator[Stage]:
    with stage_of(kind, run, Surroundings(cluster, network)) as made:
        yield made


def unlike(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What differs of what both tell: of a job that has been ended nothing is told any more."""
    return {key: (one[key], other[key]) for key in one.keys() & other.keys() if one[key] != other[key]}


def told(stage: Stage) -> None:
    """Its page says of a kind without steps, also of preparation, that there are none, and of others what they do."""
    own = stage.kind.undo_steps(stage.kind.name, [stage.victim])
    if isinstance(stage.kind, Preparing) and stage.victim.storage is not None:
        own += stage.kind.prepare_steps(stage.kind.name, stage.victim.storage)
    assert all(step.fault == stage.kind.name and step.note for step in own)
    if stage.kind.name in sections():
        undone = rows(stage.kind.name).get("undo", "No step")  # as the page's head says
        assert undone.startswith("No step") is not bool(own)


def undone_twice(stage: Stage, steps: list[UndoStep]) -> None:
    """Undo the steps; again it must be possible, be told in words and change nothing."""
    first = stage.undo(steps)
    once = stage.seen()
    second = stage.undo(steps)
    assert [outcome.how for outcome in (*first, *second) if not outcome.ok] == []
    assert all(outcome.how for outcome in second)
    assert unlike(once, stage.seen()) == {}


def make(stage: Stage, before: dict[str, Any]) -> None:
    """Make the fault, and see that it is there; skip the test where this machine cannot."""
    if stage.not_made:
        pytest.skip(f"{stage.kind.name} is not made here: {stage.not_made}")
    stage.make()
    if stage.kind.name not in NOT_SHOWN:
        wait_for("the fault", lambda: unlike(before, stage.seen()), seconds=30)


@pytest.mark.parametrize("kind", kinds())
def test_its_undo_is_told_and_may_run_twice_whether_it_was_made_or_not(kind: str, stage: Stage) -> None:
    """It was not made where the harness was killed between the note and the act."""
    try:
        told(stage)
    except FaultMissed as missed:
        if not stage.not_made:
            raise
        pytest.skip(f"{missed}: {stage.not_made}")
    steps = stage.noted()
    before = stage.seen()
    undone_twice(stage, steps)
    assert unlike(before, stage.seen()) == {}
    if not steps:
        return
    make(stage, before)
    if any(after_processes(step.action) for step in steps):
        stage.end_job()
    undone_twice(stage, steps)
    left = unlike(before, stage.seen())
    assert left.keys() == STAYS.get(kind, set()), left


@pytest.mark.parametrize("kind", IN_RUNNING_JOBS)
def test_in_a_job_that_was_running_its_undo_may_run_twice_too(kind: str, stage: Stage) -> None:
    """The rank carries nothing of the run there: actions of their own look for it by PID, start time and number."""
    stage.context = replace(stage.context, adopted=True)
    steps = [attached_form(step, RANK) for step in stage.noted()]
    before = stage.seen()
    undone_twice(stage, steps)
    make(stage, before)
    undone_twice(stage, steps)
    assert unlike(before, stage.seen()) == {}
