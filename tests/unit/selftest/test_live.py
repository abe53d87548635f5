"""Defects that are put into a job's processes: they change what they name, and only where they should."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from chaos.agent.start import Agent
from chaos.base.registry import registry
from chaos.jobs.kind import Command, JobError, JobKind, Launch, Simulated
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario
from chaos.selftest.base import scenario_of
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES, Defect
from chaos.selftest.job import ARGUMENT, PLAIN, REHEARSAL, DefectiveJob
from chaos.selftest.live import install as extension
from chaos.selftest.live.change import replaces

LIVE = [defect for defect in catalogue() if defect.layer != FILES]
NAME = "chaos.selftest.live.dump:step_too_low"
PROCESSES = [("train", None), ("train", 0), ("train", 1), ("resume", 0), ("resume", 1)]


class Watched:
    """Takes the place of the agent's hook into imports: what is watched, and what is done then."""

    def __init__(self) -> None:
        self.hooks: list[tuple[str, Callable[[Any], None]]] = []

    def watch(self, module: str, hook: Callable[[Any], None]) -> None:
        self.hooks.append((module, hook))


def process(attempt: str, rank: int | None, imports: Watched, run: Path = Path("nowhere")) -> Agent:
    barriers = None if rank is None else SimpleNamespace(step=0, _armed={(3, "forward"): ["f"]}, parameters=[])
    place = SimpleNamespace(rank=rank, ranks=2)
    agent = SimpleNamespace(
        configuration=SimpleNamespace(attempt=attempt, secret="/run/secret", history=str(run / "history")),
        place=place,
        imports=imports,
        barriers=barriers,
    )
    return cast(Agent, agent)


def function_of(defect: Defect) -> Callable[[Agent], None]:
    module, _, name = defect.inside.partition(":")
    function: Callable[[Agent], None] = getattr(import_module(module), name)
    return function


def copy_of(module: ModuleType) -> Any:
    """The module with subclasses in place of its classes, so that it can be changed for one test."""
    names = {
        name: type(name, (value,), {}) if isinstance(value, type) and value.__module__ == module.__name__ else value
        for name, value in vars(module).items()
        if not (isinstance(value, type) and hasattr(value, "__members__"))
    }
    return SimpleNamespace(**names)


@pytest.mark.parametrize("defect", LIVE, ids=lambda one: one.name)
def test_what_a_defect_changes_is_there(defect: Defect, tmp_path: Path) -> None:
    imports = Watched()
    for attempt, rank in PROCESSES:
        function_of(defect)(process(attempt, rank, imports, tmp_path))
    assert imports.hooks, "it changes nothing in any process"
    for module, hook in imports.hooks:
        if module.startswith("chaos."):
            hook(copy_of(import_module(module)))  # AttributeError where there is nothing of that name


def test_every_defect_is_in_the_catalogue_once() -> None:
    used = [defect.inside for defect in LIVE]
    written = {
        f"{module.__name__}:{name}"
        for file in Path(extension.__file__).parent.glob("*.py")
        if file.stem not in ("__init__", "install", "change", "acted")
        for module in [import_module(f"chaos.selftest.live.{file.stem}")]
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
    assert written == set(used)


def test_bases_of_live_defects_are_good_scenarios_with_a_fault() -> None:
    for name in {defect.base for defect in LIVE}:
        (cell,) = load_scenario(scenario_of(name)).cells
        assert cell.scenario.name == name and cell.scenario.faults


def test_a_replaced_function_gets_the_original_first(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("late")
    module.Thing = type("Thing", (), {"double": lambda self, number: 2 * number})  # type: ignore[attr-defined]
    imports = Watched()

    @replaces(process("train", 0, imports), "late", "Thing.double")
    def one_more(original: Any, self: Any, number: int) -> int:
        return int(original(self, number)) + 1

    assert module.Thing().double(4) == 8
    ((watched, put),) = imports.hooks
    put(module)
    assert (watched, module.Thing().double(4)) == ("late", 9)


def test_nothing_to_replace_is_an_error() -> None:
    imports = Watched()
    replaces(process("train", 0, imports), "late", "Thing.double")(lambda original: None)
    with pytest.raises(AttributeError, match="Thing"):
        imports.hooks[0][1](ModuleType("late"))


def test_without_a_name_in_the_environment_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Watched()
    monkeypatch.delenv(extension.VARIABLE, raising=False)
    extension.install(process("train", 0, imports))
    assert imports.hooks == []
    monkeypatch.setenv(extension.VARIABLE, NAME)
    extension.install(process("train", 0, imports))
    assert [module for module, _ in imports.hooks] == ["chaos.rehearsal.ttp.controller"]


def test_a_defect_that_is_not_there_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setenv(extension.VARIABLE, "chaos.selftest.live.dump:nothing_of_that_name")
    extension.install(process("train", 0, Watched()))
    assert ended == [1]
    assert "nothing_of_that_name" in capfd.readouterr().err


class Kind(JobKind):
    """A job kind that shows what it was given."""

    name = "kind"
    traits = PLAIN.traits
    extensions = ("own",)

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        self.seen.append(scenario.job.arguments)
        return (Simulated("all", "device layer"),)

    def prepare(self, launch: Launch) -> None:
        self.seen.append(launch.scenario.job.arguments)

    def command(self, launch: Launch) -> Command:
        self.seen.append(launch.scenario.job.arguments)
        return Command(("job",), {"OWN": "1"})

    def fingerprint(self, scenario: Scenario, directory: Path) -> dict[str, str]:
        self.seen.append(scenario.job.arguments)
        return {}


def launch_of(*arguments: str, faults: bool = True) -> Launch:
    fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 3}}
    scenario = Scenario.model_validate(
        {
            "chaos": 1,
            "name": "n",
            "cluster": {"ranks": 2},
            "job": {"kind": "defective-kind", "steps": 6, "arguments": arguments},
            "faults": (fault,) if faults else (),
        }
    )
    here = Path()
    return Launch(scenario, here, here, here, False, (), Path(sys.executable), "standin")


def test_the_defect_reaches_the_processes_and_not_the_script() -> None:
    own = Kind()
    kind, launch = DefectiveJob(own), launch_of("--width=8", f"{ARGUMENT}{NAME}")
    assert kind.command(launch).environment == {"OWN": "1", extension.VARIABLE: NAME}
    kind.prepare(launch)
    kind.fingerprint(launch.scenario, Path())
    assert kind.simulated(launch.scenario, "standin")[0] == Simulated(f"a seeded defect: {NAME}", "every layer")
    assert own.seen == [("--width=8",)] * 4
    assert kind.extensions == ("own", extension.__name__)


def test_the_fault_free_run_has_no_defect() -> None:
    kind, launch = DefectiveJob(Kind()), launch_of(f"{ARGUMENT}{NAME}", faults=False)
    assert kind.command(launch).environment == {"OWN": "1"}
    assert kind.simulated(launch.scenario, "standin") == (Simulated("all", "device layer"),)


@pytest.mark.parametrize("arguments", [(), (f"{ARGUMENT}a:b", f"{ARGUMENT}c:d")])
def test_a_defective_job_has_one_defect(arguments: tuple[str, ...]) -> None:
    with pytest.raises(JobError, match=r"wants --defect=package\.module:function once"):
        DefectiveJob(Kind()).command(launch_of(*arguments))


@pytest.mark.parametrize("kind", [PLAIN, REHEARSAL])
def test_the_kinds_are_registered(kind: DefectiveJob) -> None:
    assert kind.name.startswith("defective-") and registry("jobs").load(kind.name) is kind
