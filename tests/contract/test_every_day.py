"""The scenarios of every day show each fault kind, each mechanism and each job kind; those of the night show more."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import Cell, load_scenario
from tests.kit.every_fault import ON_HARDWARE, kinds
from tests.kit.shipped import SHIPPED, shipped

TABLES = runpy.run_path(str(SHIPPED / "conftest.py"))
SHOWN_BY: dict[str, str] = TABLES["SHOWN_BY"]
RUN_BY_TESTS: dict[str, str] = TABLES["RUN_BY_TESTS"]

AT_NIGHT = {
    "connection-reset": "tests/unit/faults/test_reset_connections.py",
    "damage-record": "tests/unit/faults/test_damage_record.py",
    "link": "tests/unit/faults/test_severed.py",
    "lose-checkpoint": "tests/unit/faults/test_lose_checkpoint.py",
    "network-loss": "tests/unit/faults/test_network_between_nodes.py",
    "network-rate": "tests/unit/faults/test_network_between_nodes.py",
    "port-blocked": "tests/unit/faults/test_blocked_port.py",
    "remove-checkpoint": "tests/unit/faults/test_damaging_checkpoints.py",
    "rename-checkpoint": "tests/unit/faults/test_damaging_checkpoints.py",
    "terminate": "tests/unit/faults/test_terminate.py",
}
"""Fault kinds that only long runs show, at night, and what tests them every day."""

_CLUSTER_FAULTS, _MESH = "tests/cluster/test_cluster_faults.py", "tests/cluster/test_mesh_objects.py"
_DOCKER_NODES = "tests/cluster/test_docker_nodes.py"

ELSEWHERE = {
    **dict.fromkeys(
        ("node-cordon", "node-drain", "node-not-ready", "pod-delete", "pod-evict", "public-fault"), _CLUSTER_FAULTS
    ),
    **dict.fromkeys(
        ("pod-dns-gone", "pod-io-delay", "pod-network-delay", "pod-network-loss", "pod-network-partition"), _MESH
    ),
    **dict.fromkeys(
        ("node-cpu-quota", "node-disconnect", "node-kill", "node-oom", "node-pause", "node-restart", "node-stop"),
        _DOCKER_NODES,
    ),
    "dns-gone": "tests/cluster/test_docker_names.py",
    "node-volume-gone": "tests/cluster/test_docker_volume.py",
}
"""Fault kinds of clusters and containers, whose scenarios are skipped where there is none, and what tests them with the
API server or the engine that the tests start themselves."""

ON_DEVICE = {"mindformers"}
"""Job kinds that no scenario starts without a device."""

KINDS_AT_NIGHT = {"mindformers-callbacks", "torchft"}
"""Job kinds whose scenarios take long, beside another one of the same framework."""

MECHANISMS_AT_NIGHT = {"FT": "tests/unit/plan/recovery/test_ft.py"}
"""Mechanisms whose scenarios need a package that not every machine has, and what tests them every day."""

OF_THE_SELFTEST = {"defective-plain", "defective-rehearsal", "defective-torch", "defective-torch-rehearsal"}
"""Job kinds whose scenarios come with the selftest."""


@cache
def everyday() -> tuple[Cell, ...]:
    """The cells that are no cells of the night, and that need no cluster and no engine for containers."""
    return tuple(_everyday())


def _everyday() -> Iterator[Cell]:
    for path in iter_scenarios([SHIPPED]):
        if path.stem in (*SHOWN_BY, *RUN_BY_TESTS, *TABLES["AT_NIGHT"]):
            continue
        night = TABLES["NIGHTLY"].get(path.stem, ())
        for cell in load_scenario(path, names=known_names()).cells:
            here = cell.scenario.cluster.platform.startswith("local")
            if here and "nightly" not in cell.scenario.tags and cell.name not in night:
                yield cell


@pytest.mark.parametrize("kind", sorted(set(kinds()) - set(ON_HARDWARE)))
def test_every_fault_kind_is_shown_every_day_or_something_else_shows_it(kind: str) -> None:
    shown = any(fault.kind == kind for cell in everyday() for fault in cell.scenario.faults)
    tests = {**AT_NIGHT, **ELSEWHERE}
    assert shown != (kind in tests), f"{kind} wants a scenario of every day, or a line in AT_NIGHT or ELSEWHERE"
    assert shown or _tests_by_day(kind, tests[kind])


def _tests_by_day(kind: str, file: str) -> bool:
    """Whether a file of tests names the kind, by itself or by its module, and is not one of the night as a whole."""
    text = (SHIPPED.parent / file).read_text("utf-8")
    named = re.search(rf"\b({re.escape(kind)}|{kind.replace('-', '_')})\b", text)
    return named is not None and not re.search(r"^pytestmark\b.*nightly", text, re.MULTILINE)


@pytest.mark.parametrize("mechanism", registry("mechanisms").names())
def test_every_mechanism_is_shown_every_day(mechanism: str) -> None:
    shown = any(cell.scenario.expect.mechanism == mechanism for cell in everyday())
    assert shown or _tests_by_day(mechanism, MECHANISMS_AT_NIGHT[mechanism])


@pytest.mark.parametrize("kind", sorted(set(registry("jobs").names()) - ON_DEVICE - KINDS_AT_NIGHT - OF_THE_SELFTEST))
def test_every_job_kind_is_started_every_day(kind: str) -> None:
    of_tests = [cell for name in RUN_BY_TESTS for cell in load_scenario(shipped(name), names=known_names()).cells]
    assert any(cell.scenario.job.kind == kind for cell in (*everyday(), *of_tests))


def _promise(name: str) -> dict[str, Any]:
    loaded = load_scenario(shipped(name), names=known_names())
    plan = plan_cell(loaded, loaded.cells[0], draw_seed=1)
    return {"faults": sorted(fault.kind for fault in plan.faults), "mechanism": plan.response.mechanism}


@pytest.mark.parametrize("name", SHOWN_BY)
def test_what_is_shown_at_night_with_mindspore_is_shown_every_day_with_plain_ranks(name: str) -> None:
    assert _promise(SHOWN_BY[name]) == _promise(name)
    assert any(cell.scenario.name == SHOWN_BY[name] for cell in everyday())


@pytest.mark.parametrize("name", RUN_BY_TESTS)
def test_what_a_test_runs_in_the_place_of_a_scenario_is_run_there(name: str) -> None:
    text = (SHIPPED.parent / RUN_BY_TESTS[name]).read_text("utf-8")
    runs = f'.run("{name}.yaml")'
    fixtures = (SHIPPED.parent / "tests/rehearsal/conftest.py").read_text("utf-8")  # of runs that several modules use
    assert runs in text or runs in fixtures
