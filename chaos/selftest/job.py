"""The job kinds ``defective-…``: another kind with a seeded defect in the processes of every faulted launch.

The stand-ins themselves do not know about defects. The defect is named by ``--defect=package.module:function`` among
the job's arguments, which the script never sees, and is put into each process by an extension of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from chaos.jobs.kind import Command, JobError, JobKind, Launch, Simulated
from chaos.jobs.torch.job import TorchJob
from chaos.rehearsal.job import RehearsalJob
from chaos.rehearsal.plain.job import PlainJob
from chaos.rehearsal.torch.job import TorchRehearsalJob
from chaos.scenario.models.scenario import Scenario
from chaos.selftest.live.install import VARIABLE

ARGUMENT = "--defect="


class DefectiveJob(JobKind):
    """Another job kind, with one defect in it.

    A launch without faults has no defect, so the baseline of such a scenario is the same as without one.
    """

    def __init__(self, kind: JobKind) -> None:
        self._kind = kind
        self.name = defective(kind.name)
        self.traits = kind.traits
        self.needs = kind.needs
        self.ports = kind.ports
        # After the device layer, so that a defect finds it in place.
        self.extensions = (*kind.extensions, "chaos.selftest.live.install")

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return the kind's own, and the defect first: no such run may be mistaken for a real one."""
        simulated_parts = self._kind.simulated(_without_defect(scenario), sdk)
        if not scenario.faults:
            return simulated_parts
        return (Simulated(f"a seeded defect: {_defect_of(scenario)}", "every layer"), *simulated_parts)

    def prepare(self, launch: Launch) -> None:
        """Make the job's input."""
        self._kind.prepare(replace(launch, scenario=_without_defect(launch.scenario)))

    def command(self, launch: Launch) -> Command:
        """Return the kind's command, with the defect's name in the environment. Raises JobError without a defect."""
        command = self._kind.command(replace(launch, scenario=_without_defect(launch.scenario)))
        if not launch.scenario.faults:
            return command
        return replace(command, environment={**command.environment, VARIABLE: _defect_of(launch.scenario)})

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the kind's own: the baseline has no defect."""
        return self._kind.fingerprint(_without_defect(scenario), scenario_directory)


def defective(kind: str) -> str:
    """Return the name of the kind that puts defects into jobs of this kind."""
    return f"defective-{kind}"


def _defect_of(scenario: Scenario) -> str:
    named = [argument for argument in scenario.job.arguments if argument.startswith(ARGUMENT)]
    if len(named) != 1:
        raise JobError(f"job.arguments: kind {scenario.job.kind} wants {ARGUMENT}package.module:function once")
    return named[0].removeprefix(ARGUMENT)


def _without_defect(scenario: Scenario) -> Scenario:
    arguments = tuple(argument for argument in scenario.job.arguments if not argument.startswith(ARGUMENT))
    return scenario.model_copy(update={"job": scenario.job.model_copy(update={"arguments": arguments})})


REHEARSAL, PLAIN = DefectiveJob(RehearsalJob()), DefectiveJob(PlainJob())
TORCH, TORCH_REHEARSAL = DefectiveJob(TorchJob()), DefectiveJob(TorchRehearsalJob())
