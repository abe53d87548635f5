"""A job kind whose ranks are plain Python processes on a fake MindSpore: the whole of a run in a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from chaos.jobs.kind import Command, JobKind, Launch, Simulated
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Phase

_HERE = Path(__file__).parent


class FakeJobKind(JobKind):
    """Starts ``train.py`` with the fake launcher."""

    name = "fake"
    traits = JobTraits(observable=frozenset(get_args(Phase)), checkpoint_form="mindspore")
    needs: tuple[str, ...] = ()
    ports = 1
    extensions: tuple[str, ...] = ()

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        return (Simulated("everything", "job"), *(Simulated(fault.kind, "fault") for fault in scenario.faults))

    def prepare(self, launch: Launch) -> None:
        (launch.directory / "prepared").write_text("")

    def command(self, launch: Launch) -> Command:
        job = launch.scenario.job
        script = (str(launch.python), str(_HERE / "train.py"), f"--steps={job.steps}", *job.arguments)
        argv = (str(_HERE / "msrun"), str(launch.scenario.cluster.ranks), str(launch.logs), *script)
        return Command(argv, {"FROM_KIND": "yes"}, (_HERE,))

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        return {"script": (_HERE / "train.py").read_text("utf-8")}


KIND = FakeJobKind()
