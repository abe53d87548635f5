"""One job, as input of the rules about its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.jobs.mindspeed.arguments import Argument, Arguments
from chaos.jobs.mindspeed.sizes import Sizes, sizes_of
from chaos.jobs.mindspeed.switches import VARIABLE, Switch, Switches, switches_of
from chaos.scenario.errors import Problem, printable
from chaos.scenario.lines import Lines
from chaos.scenario.models.scenario import Scenario

SOURCE = "MindSpeed-LLM, high availability"
"""Its check of arguments (``HighAvailabilityFeature.validate_args``), which ends the job at its start."""

PAGE = "MindSpeed-LLM's page on high availability"
"""What it says of each switch."""

LIMITS = "MindIO TFT, constraints"
"""The vendor's page on what MindIO TFT asks of a job of MindSpeed-LLM."""


@dataclass(frozen=True)
class Case:
    """A job of MindSpeed-LLM: its scenario, and what its arguments and variables say."""

    scenario: Scenario
    file: Path
    lines: Lines
    arguments: Arguments
    switches: Switches
    sizes: Sizes

    @property
    def on(self) -> Switch | None:
        """The switch of high availability."""
        return self.switches.available

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the scenario gives to the job."""
        return self.scenario.job.environment

    def at(self, path: str, message: str, hint: str = "", *, text: str = "") -> Problem:
        """Return a problem at a key of the scenario."""
        line, column = self.lines.nearest(path)
        return Problem(printable(str(self.file)), line, column, printable(message), printable(text), hint)

    def of(self, argument: Argument | Switch, message: str, hint: str = "") -> Problem:
        """Return a problem with an argument or a switch."""
        text = argument.spelled if isinstance(argument, Switch) else argument.name
        return self.at(argument.path, message, hint, text=text)


def case_of(scenario: Scenario, file: Path, lines: Lines) -> Case:
    """Return the case of a scenario."""
    job = scenario.job
    arguments = Arguments(job.arguments)
    switches = switches_of(arguments, job.environment.get(VARIABLE), job.strategies if job.agent else ())
    protected = switches.available is not None
    return Case(
        scenario, file, lines, arguments, switches, sizes_of(arguments, scenario.cluster.ranks, protected=protected)
    )
