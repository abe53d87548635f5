"""From a directory to a scenario that the plan accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.doctor.npu import npu
from chaos.init.choice import choose_script
from chaos.init.device import ASCEND, GPU
from chaos.init.draft import draft
from chaos.init.entries import Ask, Draft, Wishes
from chaos.init.own_launch import OwnLaunch, own_launch
from chaos.init.place import tried
from chaos.init.survey import TORCH, Survey, launch_of, survey
from chaos.init.text import scenario_text
from chaos.jobs.kind import job_kinds
from chaos.jobs.script_job import ScriptJob
from chaos.jobs.torch.devices import gpu
from chaos.machine.probe import Machine
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario


@dataclass(frozen=True)
class WorkedOut:
    """The job of a directory, the draft of its scenario, and the text of the file."""

    survey: Survey
    draft: Draft
    text: str
    own: OwnLaunch | None = None

    @property
    def file(self) -> Path:
        """The file of the scenario."""
        return self.survey.directory / f"{self.draft.name}.yaml"


def work_out(
    directory: Path,
    wishes: Wishes,
    *,
    script: Path | None,
    arguments: Sequence[str] | None,
    ask: Ask | None,
    launch: str | None = None,
) -> WorkedOut:
    """Read the job of a directory and plan the scenario that follows. Raises Refused.

    ``ask`` answers questions; None where nobody can. ``launch`` is the command that starts the job.
    """
    own = None if launch is None else own_launch(launch, directory, script, wishes.ranks)
    named = Path(own.line.script) if own is not None and own.line.script else script
    chosen = choose_script(directory, named, ask)
    line = launch_of(directory, chosen) if own is None else own.line
    job = survey(directory, chosen, line, arguments)
    drafted = draft(job, wishes, _kind_of(job.framework), here=_devices_here(job), ask=ask, own=own)
    text = scenario_text(drafted)
    result = WorkedOut(job, drafted, text, own)
    _check(result)
    return result


def _devices_here(job: Survey) -> frozenset[str]:
    """Return the devices of this machine. PyTorch is asked for a GPU only where the job may train on it."""
    machine = Machine()
    may_use = job.framework == TORCH and job.device is not None and job.device.name == GPU
    found = {ASCEND: npu(machine).ok, GPU: may_use and gpu(machine).ok}
    return frozenset(name for name, there in found.items() if there)


def _kind_of(framework: str) -> ScriptJob:
    """Return the job kind that starts scripts with this framework; of another framework, the first of all kinds."""
    own = (kind for kind in job_kinds() if isinstance(kind, ScriptJob) and not kind.traits.own_script)
    kinds = [kind for kind in own if not kind.plans_only]
    return next((kind for kind in kinds if kind.framework_need == framework), kinds[0])


def _check(result: WorkedOut) -> None:
    """Plan the scenario. Raises Refused with what the plan refuses."""
    try:
        with tried(result.survey.directory, result.text) as path:
            try:
                loaded = load_scenario(path, names=known_names())
                for cell in loaded.cells:
                    plan_cell(loaded, cell)
            except ScenarioError as error:
                raise Refused(_refusal(str(error), path, result)) from None
    except OSError as error:
        raise Refused(f"{result.survey.directory} cannot be written: {error.strerror}") from error


def _refusal(problems: str, path: Path, result: WorkedOut) -> str:
    message = problems.replace(str(path), result.file.name).replace(path.name, result.file.name)
    return f"the plan refuses what follows from the job and the flags, so nothing was written:\n{message}"
