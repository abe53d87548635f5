"""A platform that another package adds is planned, probed, refused and searched like the built-in ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.base import registry as registries
from chaos.base.registry import NOUNS, Registry, installed_points
from chaos.doctor import Machine, Probe, probe
from chaos.history.ledger import UndoStep
from chaos.machine.job.local import LocalPlatform
from chaos.plan.platform_traits import PlatformTraits
from chaos.platforms.kind import Complaint, PlatformKind, Unsupported
from chaos.platforms.nodes import END_NODES
from chaos.run.prepare.needs import needs_of_scenario
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.scenario.models.scenario import Scenario
from chaos.soak.left_on_platform import left_on_platform

SCENARIO = """chaos: 1
name: there
cluster: {platform: moon, ranks: RANKS}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: KIND
    target: {rank: 1}
    trigger: {step: 6}
"""


def few(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    """It has room for four."""
    del directory
    if scenario.cluster.ranks > 4:
        yield "cluster.ranks", "the moon has room for 4 ranks", "use fewer"


MOON = PlatformKind(
    "moon",
    LocalPlatform,
    traits=PlatformTraits(one_launcher=True),
    carries=frozenset({"process", "craters"}),
    unsupported={"agent": Unsupported("nobody hears agents there", "use kill")},
    needs=("rocket",),
    probes={"rocket": lambda machine: Probe("rocket", False, "not fuelled", "fuel it")},
    problems=few,
    left=lambda arguments, token, run_dir: [f"a flag of {token}"],
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point of a package, beside those that are installed."""

    def points(group: str) -> Iterable[EntryPoint]:
        own = [EntryPoint("moon", f"{__name__}:MOON", group)] if group == "chaos.platforms" else []
        return [*installed_points(group), *own]

    def registry(group: str) -> Registry:
        full = f"chaos.{group.removeprefix('chaos.')}"
        return Registry(full, NOUNS[full], source=points)

    monkeypatch.setattr(registries, "registry", registry)
    monkeypatch.setattr("chaos.run.prepare.prepare.registry", registry)


def scenario(path: Path, kind: str = "kill", ranks: int = 4) -> LoadedScenario:
    file = path / "there.yaml"
    file.write_text(SCENARIO.replace("KIND", kind).replace("RANKS", str(ranks)))
    return load_scenario(file, names=known_names())


def test_what_it_carries_is_planned_and_what_it_needs_is_looked_for(tmp_path: Path) -> None:
    loaded = scenario(tmp_path)
    assert plan_cell(loaded, loaded.cells[0], 1).response.mechanism == "TTP"
    needs = needs_of_scenario(loaded.cells[0].scenario)
    (lacking,) = [result for result in probe(needs, Machine(reports=tmp_path)) if result.need == "rocket"]
    assert (lacking.ok, lacking.advice) == (False, "fuel it")


@pytest.mark.parametrize(
    ("kind", "ranks", "told"),
    [
        ("exception", 4, "the platform moon cannot carry the fault kind 'exception': .* nobody hears agents there"),
        ("disk-full", 4, "it carries faults that act on craters, a process by a signal"),
        ("kill", 8, "the moon has room for 4 ranks"),
    ],
)
def test_what_it_does_not_is_refused_with_its_reason(tmp_path: Path, kind: str, ranks: int, told: str) -> None:
    loaded = scenario(tmp_path, kind, ranks)
    with pytest.raises(ScenarioError, match=told):
        plan_cell(loaded, loaded.cells[0], 1)


def test_what_a_killed_run_has_left_there_is_searched_for_by_the_platform(tmp_path: Path) -> None:
    step = UndoStep("nodes", None, END_NODES, {"platform": "moon"})
    assert left_on_platform(tmp_path, "run-1", [step]) == ["a flag of run-1"]
