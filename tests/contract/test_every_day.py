"""The scenarios of every day show each fault kind, each mechanism and each job kind; those of the night show more."""

from __future__ import annotations

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
    "remove-checkpoint": "tests/unit/faults/test_damaging_checkpoints.py",
}
"""Fault kinds that only long jobs of MindSpore or MindFormers show, at night, and what tests them every day."""

ON_DEVICE = {"mindformers"}
"""Job kinds that no scenario starts without a device."""

OF_THE_SELFTEST = {"defective-plain", "defective-rehearsal"}
"""Job kinds whose scenarios come with the selftest."""


@cache
def everyday() -> tuple[Cell, ...]:
    """The cells that are no cells of the night. Those in containers and pods are skipped where there is no engine."""
    return tuple(_everyday())


def _everyday() -> Iterator[Cell]:
    for path in iter_scenarios([SHIPPED]):
        if path.stem in SHOWN_BY or path.stem in RUN_BY_TESTS:
            continue
        night = TABLES["NIGHTLY"].get(path.stem, ())
        for cell in load_scenario(path, names=known_names()).cells:
            if "nightly" not in cell.scenario.tags and cell.name not in night:
                yield cell


@pytest.mark.parametrize("kind", sorted(set(kinds()) - set(ON_HARDWARE)))
def test_every_fault_kind_is_shown_every_day_or_something_else_shows_it(kind: str) -> None:
    shown = any(fault.kind == kind for cell in everyday() for fault in cell.scenario.faults)
    assert shown != (kind in AT_NIGHT), f"{kind} wants a scenario of every day, or a line in AT_NIGHT"
    assert shown or (SHIPPED.parent / AT_NIGHT[kind]).is_file()


@pytest.mark.parametrize("mechanism", registry("mechanisms").names())
def test_every_mechanism_is_shown_every_day(mechanism: str) -> None:
    assert any(cell.scenario.expect.mechanism == mechanism for cell in everyday())


@pytest.mark.parametrize("kind", sorted(set(registry("jobs").names()) - ON_DEVICE - OF_THE_SELFTEST))
def test_every_job_kind_is_started_every_day(kind: str) -> None:
    assert any(cell.scenario.job.kind == kind for cell in everyday())


def _promise(name: str) -> dict[str, Any]:
    loaded = load_scenario(shipped(name), names=known_names())
    plan = plan_cell(loaded, loaded.cells[0], draw_seed=1)
    return {"faults": sorted(fault.kind for fault in plan.faults), "mechanism": plan.mechanism}


@pytest.mark.parametrize("name", SHOWN_BY)
def test_what_is_shown_at_night_with_mindspore_is_shown_every_day_with_plain_ranks(name: str) -> None:
    assert _promise(SHOWN_BY[name]) == _promise(name)
    assert any(cell.scenario.name == SHOWN_BY[name] for cell in everyday())


@pytest.mark.parametrize("name", RUN_BY_TESTS)
def test_what_a_test_runs_in_the_place_of_a_scenario_is_run_there(name: str) -> None:
    text = (SHIPPED.parent / RUN_BY_TESTS[name]).read_text("utf-8")
    runs = f'chaos.run("{name}.yaml")'
    fixtures = (SHIPPED.parent / "tests/rehearsal/conftest.py").read_text("utf-8")  # of runs that several modules use
    assert runs in text or runs in fixtures
