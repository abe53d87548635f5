"""The job kind ``mindspore``: a user's own training script under msrun. All its parts are genuine.

PYTHONPATH loads the agent, which observes ``Model.train`` or the script's own loop, ``save_checkpoint`` and
``load_checkpoint``. The script itself is unknown: the scenario states what it trains, the length of an epoch and the
interval of saves, and the checks test whether these hold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.jobs.inputs import python_files, sources_digest
from chaos.jobs.kind import Command, JobError, JobKind, Launch, Simulated
from chaos.jobs.msrun import msrun_argv, tft_environment
from chaos.jobs.own_launcher import check_command, own_argv, own_digests, rank_environment
from chaos.plan.traits import JobTraits
from chaos.scenario.local_files import file_problem
from chaos.scenario.models.scenario import Scenario

_FRAMEWORK = re.compile(rb"\bmind(spore|formers)\b")

_OF_THE_SCRIPT = "leaves that to the script: use job.arguments"


class MindSporeJob(JobKind):
    """Starts the scenario's script with its arguments, in a directory of the run."""

    name = "mindspore"
    traits = JobTraits(
        # The reduction of gradients is the device layer's, which is MindSpore's own here.
        observable=frozenset(
            {
                "step.begin",
                "forward",
                "optimizer.update",
                "step.end",
                "checkpoint.begin",
                "checkpoint.write",
                "checkpoint.end",
                "checkpoint.load",
            }
        ),
        checkpoint_form="mindspore",
        resumes_periodic=True,
        devices=frozenset({"CPU", "Ascend"}),
        genuine=True,
        gradients=False,
        own_script=False,
        own_launcher=True,
        ports={"scheduler": 0, "controller": 1},
        lacks={
            "job.agent": "starts no cluster agent: on a cluster MindCluster does",
            "job.tre": _OF_THE_SCRIPT,
            "job.hccl": "has MindSpore's own collectives: set HCCL_EXEC_TIMEOUT or, on a CPU, MS_CPU_COMM_OP_TIMEOUT "
            "(in seconds) in job.environment",
            "job.graph": _OF_THE_SCRIPT,
            "job.compile_cache": "is set by job.environment (MS_COMPILER_CACHE_ENABLE)",
            "job.storage.mb_per_second": "holds no storage back",
            "job.storage.asynchronous_saving": _OF_THE_SCRIPT,
            "job.storage.memory": "keeps no checkpoint in memory",
        },
    )
    examples: Mapping[str, Mapping[str, Any]] = {"device": {"device": "Ascend", "script": "train.py"}}
    needs: tuple[str, ...] = ("mindspore", "numpy", "msrun")
    ports = 2
    extensions: tuple[str, ...] = ()

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Leave msrun out where the scenario has a launcher of its own."""
        return tuple(need for need in self.needs if need != "msrun" or scenario.job.command is None)

    def needs_beside(self, scenario: Scenario, directory: Path) -> tuple[str, ...]:
        """Leave MindSpore out where another launcher starts a script that names neither MindSpore nor MindFormers."""
        needs = self.needs_for(scenario)
        if scenario.job.command is None or _names_framework(scenario, directory):
            return needs
        return tuple(need for need in needs if need != "mindspore")

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
        _script(launch.scenario, launch.scenario_directory)

    def command(self, launch: Launch) -> Command:
        """Return msrun, or the scenario's own launcher, with the script and its arguments.

        A resume appends the arguments of the resume.
        """
        job = launch.scenario.job
        master_port, controller_port = launch.ports
        script = _script(launch.scenario, launch.scenario_directory)
        arguments = (*job.arguments, *(job.resume_arguments if launch.resume else ()))
        environment = {**tft_environment(launch, controller_port), **rank_environment(job)}
        if job.command is not None:
            rank_command = (str(launch.python), str(script), *arguments)
            return Command(own_argv(launch, rank_command, port=master_port), environment)
        return Command(msrun_argv(launch, script, arguments, master_port=master_port), environment)

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the script, and the modules and packages beside it that it may import. Other inputs are unknown."""
        script = _script(scenario, scenario_directory)
        return {
            **own_digests(scenario.job, scenario_directory),
            **{f"script {file.name}": _digest(file, script) for file in _modules(script)},
            **{f"package {package.name}": sources_digest(package) for package in _packages(script)},
        }


def _modules(script: Path) -> list[Path]:
    """Return the script and the modules beside it."""
    # No module has a name that begins with a dot: editors keep such files, and locks that are broken links.
    beside = (file for file in script.parent.glob("*.py") if not file.name.startswith(".") and not file.is_dir())
    return sorted({script, *beside})


def _packages(script: Path) -> list[Path]:
    return sorted(file.parent for file in script.parent.glob("*/__init__.py"))


def _names_framework(scenario: Scenario, directory: Path) -> bool:
    """Return whether a source of the job has the word mindspore or mindformers. One that cannot be read may have it."""
    try:
        script = _script(scenario, directory)
        files = (*_modules(script), *(file for package in _packages(script) for file in python_files(package)))
        return any(_FRAMEWORK.search(read_plain(file)) for file in files)
    except (JobError, OSError):
        return True


def _digest(file: Path, script: Path) -> str:
    """Return the digest of the script, or of a module beside it. Raises JobError where the file cannot be read."""
    try:
        return hashlib.sha256(read_plain(file)).hexdigest()
    except OSError as error:
        advice = "make it readable" if file == script else "the script may import it: make it readable, or move it away"
        raise JobError(f"job.script: {error}; {advice}") from error


def _script(scenario: Scenario, directory: Path) -> Path:
    if scenario.job.script is None:
        raise JobError("job.script: the job kind mindspore has no script of its own; name yours")
    script = (directory / scenario.job.script).resolve()
    if not script.is_file():
        raise JobError(f"job.script: there is no file {script}")
    return script


KIND = MindSporeJob()
