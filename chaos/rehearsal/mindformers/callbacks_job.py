"""The job kind ``mindformers-callbacks``: a training script of plain MindSpore with MindFormers' own callbacks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.jobs.kind import Command, Launch
from chaos.jobs.mindformers.run_copy import REGISTERED
from chaos.jobs.mindspore import MindSporeJob
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

_SCRIPT = Path(__file__).parent / "jobs" / "callbacks.py"


class MindFormersCallbacks(MindSporeJob):
    """MFLossMonitor, TrainingStateMonitor and CheckpointMonitor around ``Model.train``; nothing is replaced."""

    name = "mindformers-callbacks"
    traits: JobTraits = replace(
        MindSporeJob.traits,
        checkpoint_form="mindformers",
        devices=frozenset({"CPU"}),
        own_script=True,
        loading=frozenset({"path", "callback"}),
        lacks={**MindSporeJob.traits.lacks, "job.script": "has a script of its own and runs no other"},
    )
    examples: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    needs: tuple[str, ...] = (*MindSporeJob.needs, "mindformers")

    def prepare(self, launch: Launch) -> None:
        """Prepare nothing: the job makes its own input."""

    def command(self, launch: Launch) -> Command:
        """Return msrun with this kind's own script. Raises JobError."""
        job = launch.scenario.job
        arguments = (
            f"--output={launch.directory / 'output'}",
            f"--steps={job.steps}",
            f"--save-steps={job.checkpoint_interval or job.steps}",
            f"--seed={job.seed}",
            *(["--agent-callback"] if job.loading == "callback" else []),
            *job.arguments,
        )
        wrapped = job.model_copy(
            update={"script": str(_SCRIPT), "arguments": arguments, "resume_arguments": ("--resume",)}
        )
        placed = replace(launch, scenario=launch.scenario.model_copy(update={"job": wrapped}))
        command = super().command(placed)
        environment = {**command.environment, "OMP_NUM_THREADS": "1"}
        if job.loading == "path":
            return replace(command, environment=environment)
        return replace(command, environment={**environment, "REGISTER_PATH": str(REGISTERED)}, agent_by_path=False)

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the script."""
        return {"script": hashlib.sha256(_SCRIPT.read_bytes()).hexdigest()}


KIND = MindFormersCallbacks()
