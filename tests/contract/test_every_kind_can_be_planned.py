"""Every fault kind has an example that can be planned as it stands, and whose plan names the kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.faults.example import example, written
from chaos.faults.registered import fault_kind
from chaos.plan.job_effect import may_be_planned, read
from tests.contract.planning import plans_of, write_files
from tests.kit.every_fault import kinds

ELSEWHERE = {"port-blocked": "it hits the node on which the SDK's controller listens, the first"}
"""Kinds whose example hits another rank than the one that is asked for, and why."""

SIZES = [(0, 1), (6, 7), (9, 0)]
"""A rank that is hit, and how many its job has as far as is known."""


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that examples name."""
    return write_files(tmp_path_factory.mktemp("examples"))


@pytest.mark.parametrize("kind", kinds())
def test_it_is_registered_by_its_own_name(kind: str) -> None:
    assert fault_kind(kind).name == kind


@pytest.mark.parametrize("kind", kinds())
def test_the_plan_knows_its_effect_and_where_it_can_be_made(kind: str) -> None:
    loaded = fault_kind(kind)
    assert may_be_planned(loaded.effect) and read(loaded.effect.name) == loaded.effect
    if loaded.required_place is not None:
        assert loaded.required_place.phases is None or loaded.required_place.phases


@pytest.mark.parametrize("kind", kinds())
def test_chaos_plan_of_its_example_names_it(
    kind: str, beside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(beside)
    Path("example.yaml").write_text(written(example(fault_kind(kind), 1, 2)))
    code, said = entry(["plan", "example.yaml"]), capsys.readouterr()
    assert code == 0, said.err
    assert re.search(rf"^  \S+: {kind} on ", said.out, re.M), said.out


@pytest.mark.parametrize("kind", kinds())
def test_its_example_has_the_rank_whatever_the_size_of_the_job(kind: str, beside: Path) -> None:
    loaded = fault_kind(kind)
    for rank, size in SIZES:
        for plan in plans_of(written(example(loaded, rank, size)), beside):
            (fault,) = [planned_fault for planned_fault in plan.faults if planned_fault.kind == kind]
            assert (rank in fault.ranks) is (kind not in ELSEWHERE or rank == 0)
