"""The job kind ``torch``: a user's own training script in PyTorch, under torchrun. All its parts are genuine.

PYTHONPATH loads the agent, which observes optimizers, forward and backward runs, ``torch.save`` and ``torch.load``.
The script may train on a CPU, on NPUs or on GPUs (``job.device``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from chaos.jobs.kind import Command, Launch
from chaos.jobs.mindspeed.hint import unplanned_switches
from chaos.jobs.script_job import ScriptJob
from chaos.jobs.torch.devices import GPU, gpu, gpus_of
from chaos.jobs.torch.drawn import draw_job, scripts
from chaos.jobs.torch.interpreter import interpreter
from chaos.jobs.torch.own_python import OwnPython
from chaos.jobs.torch.probe import torch
from chaos.jobs.torch.stores import lost_starts
from chaos.jobs.torch.torchrun import torchrun_argv, torchrun_environment
from chaos.plan.traits import JobTraits
from chaos.scenario.models.mechanisms import launcher_restarts_all
from chaos.scenario.models.scenario import Scenario

_OF_THE_SCRIPT = "leaves that to the script: use job.arguments"


class TorchJob(OwnPython, ScriptJob):
    """Starts the scenario's script with its arguments, in a directory of the run."""

    name = "torch"
    framework = re.compile(rb"\b(torch|mindspeed|megatron)\b")
    framework_need = "torch"
    launcher = "torchrun"
    traits = JobTraits(
        # No checkpoint.end: scripts publish a file by renaming it, and a fault before that leaves none to go on from.
        observable=frozenset(
            {
                "step.begin",
                "forward",
                "allreduce.enter",
                "optimizer.update",
                "step.end",
                "checkpoint.begin",
                "checkpoint.write",
                "checkpoint.load",
            }
        ),
        checkpoint_form=None,
        resumes_periodic=True,
        devices=frozenset({"CPU", "Ascend", "GPU"}),
        genuine=True,
        alters=frozenset({"gradient", "loss", "weight"}),
        spikes=frozenset({"factor"}),
        gradients=False,
        own_script=False,
        mindspore=False,
        vendor=None,
        own_launcher=True,
        own_python=True,
        optimizers=True,
        seeds=True,
        launcher_restarts=True,
        file_format=None,
        shards_state=True,
        lacks={
            "job.agent": "starts no cluster agent: on a cluster MindCluster does",
            "job.tre": _OF_THE_SCRIPT,
            "job.torchrun.edited": "starts torchrun as it is: let your own command start an edited one (job.command)",
            "job.hccl": "has PyTorch's own collectives: give init_process_group its timeout in the script",
            "job.graph": _OF_THE_SCRIPT,
            "job.compile_cache": "keeps no graphs of MindSpore's",
            "job.storage.mb_per_second": "holds no storage back",
            "job.storage.asynchronous_saving": _OF_THE_SCRIPT,
            "job.storage.memory": "keeps no checkpoint in memory",
        },
    )
    examples: Mapping[str, Mapping[str, Any]] = {}
    needs = ("torch",)
    probes = MappingProxyType({"torch": torch, "gpu": gpu})
    ports = 1
    extensions = (
        "chaos.agent.torch.alterations",
        "chaos.agent.torch.interface",
        "chaos.agent.torch.rank_logs",
        "chaos.agent.torch.seeds",
    )

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Return also a GPU, if the job trains on it, and no other interpreter is asked for it."""
        needs = super().needs_for(scenario)
        return (*needs, "gpu") if scenario.job.device == GPU and scenario.job.python is None else needs

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return also the interpreter's releases and GPUs: another PyTorch or GPU may sum in another order."""
        found = {**super().fingerprint(scenario, scenario_directory), **self.releases(scenario, scenario_directory)}
        if scenario.job.device == GPU:
            found["GPUs"] = gpus_of(interpreter(scenario, scenario_directory))
        return found

    def traits_for(self, scenario: Scenario, directory: Path, elsewhere: Collection[str]) -> JobTraits:
        """Return also why torchrun of the job's release could not start its ranks again."""
        version = None if self.framework_need in elsewhere else self.torch_version(scenario, directory)
        return replace(self.traits, lost_starts=lost_starts(scenario, version))

    def environment(self, launch: Launch) -> Mapping[str, str]:
        """Return the environment of torchrun and its ranks."""
        return torchrun_environment(launch)

    def complete_drawn(self, draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> None:
        """Complete a random scenario with one of the scripts that chaos comes with."""
        draw_job(draw, cluster, job)

    def drawn_files(self) -> tuple[Path, ...]:
        """Return these scripts."""
        return scripts()

    def remarks(self, scenario: Scenario) -> Iterator[str]:
        """Yield that this kind plans nothing of the switches of MindSpeed-LLM."""
        return unplanned_switches(scenario.job)

    def own_command(self, launch: Launch, script: Path, arguments: tuple[str, ...]) -> Command:
        """Return torchrun with the script and its arguments; it starts ranks again where a mechanism does."""
        job = launch.scenario.job
        restarts = job.restart_limit if launcher_restarts_all(job.protection) else 0
        argv = torchrun_argv(launch, (str(script), *arguments), port=self.launcher_port(launch), restarts=restarts)
        return Command(argv, self.environment(launch))


KIND = TorchJob()
