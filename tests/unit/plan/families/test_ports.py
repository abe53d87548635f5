"""A port that a scenario names by a word is one that the job has, on a node that is hit; another is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chaos.base.registry import registry
from chaos.faults.network.plan_ports import PORT, RESET_PORT

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KINDS = sorted(registry("jobs").some_names() or ())


@pytest.fixture
def job(plan: Planner) -> Planner:
    """Two nodes with two ranks each, of a job whose ports are known as those of plain ranks are."""
    plan.traits = replace(plan.traits, ports={"controller": 0}, own_ports=frozenset({"communicator"}))
    plan.parameters = {"mark": {"port": PORT}}
    return plan


@pytest.fixture
def resetting(job: Planner) -> Planner:
    """The same, with a kind of fault that resets connections of a port."""
    job.parameters = {"mark": {"port": RESET_PORT}}
    return job


def at(port: object, **target: int) -> dict[str, Any]:
    return {"kind": "mark", "target": target or {"node": 0}, "trigger": {"step": 4}, "parameters": {"port": port}}


NODES: dict[str, Any] = {"cluster": {"ranks": 4, "nodes": 2}}


@pytest.mark.parametrize("port", ["controller", "communicator", 1, 65535])
def test_a_port_that_is_known_on_the_node_that_is_hit_is_planned(port: object, job: Planner) -> None:
    assert job(at(port), **NODES).faults[0].parameters == {"port": port}


def test_a_number_is_a_port_of_any_node(job: Planner) -> None:
    assert job(at(4444, node=1), **NODES).faults[0].ranks == (2, 3)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (at("scheduler"), "of a job of kind rehearsal no port is known as 'scheduler'"),
        (at("controller", node=1), "the controller is on node 0, and ranks 2-3 are hit"),
        (at("communicator", rank=3), "no rank on another node is connected to a port of rank 3"),
        (at("door"), "port of a mark is one of controller, scheduler, communicator, or a whole number from 1 to 65535"),
        (at(0), "or a whole number from 1 to 65535, not 0"),
    ],
)
def test_any_other_is_refused_by_name(fault: dict[str, Any], told: str, job: Planner) -> None:
    assert told in job.refused(fault, **NODES)


def test_connections_with_the_controller_are_reset_from_any_node_where_heartbeats_alone_count(
    resetting: Planner,
) -> None:
    assert resetting(at("controller", node=1), job={"timings": "vendor"}, **NODES).faults[0].ranks == (2, 3)
    message = resetting.refused(at("controller", node=1), **NODES)
    assert "with the timings fast a rank whose connection has broken counts as lost at once" in message
    assert "set job.timings: vendor" in message


@pytest.mark.parametrize(
    ("port", "told"),
    [
        ("scheduler", "of a job of kind rehearsal no port is known as 'scheduler'"),
        ("communicator", "port of a mark is one of controller, scheduler, or a whole number"),
    ],
)
def test_connections_of_any_other_port_are_refused_by_name(port: str, told: str, resetting: Planner) -> None:
    assert told in resetting.refused(at(port), job={"timings": "vendor"}, **NODES)


def test_without_a_mechanism_of_the_sdk_there_is_no_controller(job: Planner) -> None:
    message = job.refused(at("controller"), job={"protection": ()}, **NODES)
    assert "no mechanism of MindIO TFT is on, so there is no controller that could listen" in message
    assert "add one to job.protection: TTP, UCE, HCCE, ARF, TSP" in message


@pytest.mark.parametrize("kind", KINDS)
def test_the_ports_of_every_kind_are_among_those_of_its_launches(kind: str) -> None:
    loaded = registry("jobs").load(kind)
    assert set(loaded.traits.ports.values()) <= set(range(loaded.ports))
    assert {*loaded.traits.ports, *loaded.traits.own_ports} <= set(PORT.words)
