"""The base of job kinds that start a training script of the user's own, whatever framework trains it.

The script itself is unknown: the scenario states what it trains and the interval of its saves, and the checks test
whether these hold.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.jobs.inputs import python_files, sources_digest
from chaos.jobs.kind import Command, JobError, JobKind, Launch, Simulated
from chaos.jobs.own_launcher import check_command, own_argv, own_digests, rank_environment
from chaos.scenario.local_files import file_problem
from chaos.scenario.models.scenario import Scenario


class ScriptJob(JobKind):
    """Starts the scenario's script with its arguments, in a directory of the run, by its own or the user's launcher.

    ``framework`` is a pattern of the name of the framework in a source, ``framework_need`` its package and probe.
    ``launcher`` is the kind's own launcher, and ``launcher_need`` the probe of it; None where the framework brings it.
    """

    framework: re.Pattern[bytes]
    framework_need: str
    launcher: str
    launcher_need: str | None = None

    @abstractmethod
    def own_command(self, launch: Launch, script: Path, arguments: tuple[str, ...]) -> Command:
        """Return how the kind's own launcher starts the script."""

    def environment(self, launch: Launch) -> Mapping[str, str]:
        """Return variables of every launch, also of one by a launcher of the user's own."""
        del launch
        return {}

    def launcher_port(self, launch: Launch) -> int:
        """Return the port at which the ranks meet."""
        return launch.ports[0]

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Leave the kind's launcher out where the scenario has a launcher of its own."""
        own = self.launcher_need if scenario.job.command is not None else None
        return tuple(need for need in self.needs if need != own)

    def needs_beside(self, scenario: Scenario, directory: Path) -> tuple[str, ...]:
        """Leave the framework out where another launcher starts a script that does not name it."""
        needs = self.needs_for(scenario)
        if scenario.job.command is None or self._names_framework(scenario, directory):
            return needs
        return tuple(need for need in needs if need != self.framework_need)

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return nothing: all parts are genuine."""
        del scenario, sdk
        return ()

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Yield the script, if it cannot be read."""
        if scenario.job.script is not None and (why := file_problem(path := directory / scenario.job.script)):
            yield "job.script", f"{path}: {why}", "name it relative to the scenario's file, or in full"

    def prepare(self, launch: Launch) -> None:
        """Raise JobError if there is no script, or if the launcher's words cannot be filled in."""
        check_command(launch.scenario.job)
        self._script(launch.scenario, launch.scenario_directory)

    def command(self, launch: Launch) -> Command:
        """Return the kind's own launcher, or the scenario's, with the script and its arguments.

        A resume appends the arguments of the resume.
        """
        job = launch.scenario.job
        script = self._script(launch.scenario, launch.scenario_directory)
        arguments = (*job.arguments, *(job.resume_arguments if launch.resume else ()))
        if job.command is None:
            return self.own_command(launch, script, arguments)
        rank_command = (str(launch.python), str(script), *arguments)
        argv = own_argv(launch, rank_command, port=self.launcher_port(launch))
        return Command(argv, {**self.environment(launch), **rank_environment(job)})

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the script, and the modules and packages beside it that it may import. Other inputs are unknown."""
        script = self._script(scenario, scenario_directory)
        return {
            **own_digests(scenario.job, scenario_directory),
            **{f"script {file.name}": _digest(file, script) for file in _modules(script)},
            **{f"package {package.name}": sources_digest(package) for package in _packages(script)},
        }

    def _names_framework(self, scenario: Scenario, directory: Path) -> bool:
        """Return whether a source of the job names the framework. One that cannot be read may name it."""
        try:
            script = self._script(scenario, directory)
            files = (*_modules(script), *(file for package in _packages(script) for file in python_files(package)))
            return any(self.framework.search(read_plain(file)) for file in files)
        except (JobError, OSError):
            return True

    def _script(self, scenario: Scenario, directory: Path) -> Path:
        if scenario.job.script is None:
            raise JobError(f"job.script: the job kind {self.name} has no script of its own; name yours")
        script = (directory / scenario.job.script).resolve()
        if not script.is_file():
            raise JobError(f"job.script: there is no file {script}")
        return script


def _modules(script: Path) -> list[Path]:
    """Return the script and the modules beside it."""
    # No module has a name that begins with a dot: editors keep such files, and locks that are broken links.
    beside = (file for file in script.parent.glob("*.py") if not file.name.startswith(".") and not file.is_dir())
    return sorted({script, *beside})


def _packages(script: Path) -> list[Path]:
    return sorted(file.parent for file in script.parent.glob("*/__init__.py"))


def _digest(file: Path, script: Path) -> str:
    """Return the digest of the script, or of a module beside it. Raises JobError where the file cannot be read."""
    try:
        return hashlib.sha256(read_plain(file)).hexdigest()
    except OSError as error:
        advice = "make it readable" if file == script else "the script may import it: make it readable, or move it away"
        raise JobError(f"job.script: {error}; {advice}") from error
