"""The inputs that decide the losses of a run's job besides the scenario, and whether they are unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.jobs.inputs import BY_SIZE_AND_TIME, changes, module_inputs, named_inputs
from chaos.jobs.kind import JobError, JobKind
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kind import PlatformKind
from chaos.run.prepare.environment import deciding
from chaos.run.prepare.registered import Registered
from chaos.scenario.models.scenario import Scenario


class InputChanged(RuntimeError):
    """An input of the job has changed since the run began. The text names it."""


def inputs_of(
    kind: JobKind, platform: PlatformKind, scenario: Scenario, directory: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the fingerprint of everything that the job of a scenario in ``directory`` is known to read.

    ``platform`` is the platform that the scenario names. Raises JobError.
    """
    modules = scenario.job.environment.get("PYTHONPATH", environment.get("PYTHONPATH", ""))
    return {
        **kind.fingerprint(scenario, directory),
        **named_inputs(scenario.job.arguments),
        **_of_platform(platform, scenario, directory),
        **module_inputs(modules),
        **{f"environment {name}": value for name, value in deciding(environment).items()},
    }


def _of_platform(platform: PlatformKind, scenario: Scenario, directory: Path) -> Mapping[str, str]:
    """Return the fingerprints of files that the job's platform reads."""
    try:
        return platform.inputs(scenario, directory)
    except PlatformError as error:
        raise JobError(str(error)) from error


class Inputs:
    """The job's inputs as first seen: when the run was planned, then when it began.

    Raises JobError where one cannot be read.
    """

    def __init__(
        self,
        kind: JobKind,
        platform: PlatformKind,
        scenario: Scenario,
        directory: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._of = (kind, platform, scenario, directory, environment)
        self.begun = inputs_of(*self._of)

    def begin(self) -> Inputs:
        """Return the inputs at the start of the run, which other runs of the same call may have delayed.

        Raises InputChanged where a source or a configuration differs from the planned one.
        """
        now = self._now("when the run was planned")
        if sources := _sources(changes(self.begun, now.begun)):
            raise InputChanged(
                f"{self._differences(sources, now)} since the run was planned, so the plan may be that of another job; "
                f"run it again{self._advice(sources)}"
            )
        return now

    def changed(self) -> tuple[str, ...]:
        """Return the files and directories with another size or time. The job may write to them itself.

        Raises InputChanged where a source or a configuration has changed: no job writes its own.
        """
        now = self._now("when the run began")
        changed_inputs = changes(self.begun, now.begun)
        if sources := _sources(changed_inputs):
            raise InputChanged(
                f"{self._differences(sources, now)} while the run went on, so its launches are not of one job; run it "
                f"again, and leave the files as they are meanwhile{self._advice(sources)}"
            )
        return tuple(name.removeprefix(BY_SIZE_AND_TIME) for name in changed_inputs)

    def _differences(self, names: Iterable[str], now: Inputs) -> str:
        """Return what has become of each of these inputs, in words."""
        words = []
        for name in names:
            state = "is gone" if name not in now.begun else "has changed" if name in self.begun else "is new"
            words.append(f"{name} {state}")
        return ", ".join(words)

    def _advice(self, names: Iterable[str]) -> str:
        """Return what to do about a source that was not there; empty where all of them were."""
        if all(name in self.begun for name in names):
            return ""
        return (
            " (a Python file beside the script counts, since a launch may import it: where the job writes the file "
            "itself, let it write to its working directory)"
        )

    def _now(self, before: str) -> Inputs:
        try:
            return Inputs(*self._of)
        except JobError as error:
            raise InputChanged(f"{error}, which was there {before}; run it again") from error


def _sources(changed: Iterable[str]) -> list[str]:
    """Keep the changed inputs that are known by content: sources and configurations."""
    return [name for name in changed if not name.startswith(BY_SIZE_AND_TIME)]


def planned_inputs(
    registered: Registered, scenario: Scenario, directory: Path, environment: Mapping[str, str]
) -> Inputs:
    """Return the inputs of a scenario in ``directory`` as planned, in the environment of this process.

    Raises Refused where an input cannot be read.
    """
    try:
        # On nodes with an environment of their own, nothing of this one reaches the job.
        inherited = {} if registered.platform.own_environment else dict(environment)
        return Inputs(registered.job, registered.named, scenario, directory, inherited)
    except JobError as error:
        raise Refused(str(error)) from error
