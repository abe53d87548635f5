"""What decides about the losses of a run's job besides the scenario, and whether it is still what it was."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.jobs.inputs import SEEN, changes, module_inputs, named_inputs
from chaos.jobs.kind import JobError, JobKind
from chaos.machine.job.protocol import PlatformError
from chaos.run.prepare.environment import deciding
from chaos.run.prepare.on_platform import named_platform
from chaos.scenario.models.scenario import Scenario


class InputChanged(RuntimeError):
    """What the job is made of is not what it was when the run began. The text says what has changed."""


def inputs_of(kind: JobKind, scenario: Scenario, directory: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The fingerprint of everything that the job of a scenario in ``directory`` is known to read. Raises JobError."""
    modules = scenario.job.environment.get("PYTHONPATH", environment.get("PYTHONPATH", ""))
    return {
        **kind.fingerprint(scenario, directory),
        **named_inputs(scenario.job.arguments),
        **_of_platform(scenario, directory),
        **module_inputs(modules),
        **{f"environment {name}": value for name, value in deciding(environment).items()},
    }


def _of_platform(scenario: Scenario, directory: Path) -> Mapping[str, str]:
    """The fingerprints of files that the job's platform reads."""
    try:
        return named_platform(scenario).inputs(scenario, directory)
    except PlatformError as error:
        raise JobError(str(error)) from error


class Inputs:
    """The job's inputs as they were when the run began."""

    def __init__(self, kind: JobKind, scenario: Scenario, directory: Path, environment: Mapping[str, str]) -> None:
        self._of = (kind, scenario, directory, environment)
        self.begun = inputs_of(*self._of)

    def changed(self) -> tuple[str, ...]:
        """Files and directories that look otherwise by size and time. The job may write to them itself.

        Raises InputChanged where a source or a configuration has changed: no job writes its own.
        """
        try:
            now = inputs_of(*self._of)
        except JobError as error:
            raise InputChanged(f"{error}, which was there when the run began; run it again") from error
        found = changes(self.begun, now)
        if sources := [name for name in found if not name.startswith(SEEN)]:
            raise InputChanged(
                f"{', '.join(sources)} has changed while the run went on, so its launches are not of one job; run it "
                "again, and leave the files as they are meanwhile"
            )
        return tuple(name.removeprefix(SEEN) for name in found)
