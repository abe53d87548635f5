"""The job kind ``mindspore``: a user's own training script under msrun. All its parts are genuine.

PYTHONPATH loads the agent, which observes ``Model.train`` or the script's own loop, ``save_checkpoint`` and
``load_checkpoint``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.jobs.kind import Command, Launch
from chaos.jobs.msrun import msrun_argv, tft_environment
from chaos.jobs.script_job import ScriptJob
from chaos.plan.traits import JobTraits

_OF_THE_SCRIPT = "leaves that to the script: use job.arguments"


class MindSporeJob(ScriptJob):
    """Starts the scenario's script with its arguments, in a directory of the run."""

    name = "mindspore"
    framework = re.compile(rb"\bmind(spore|formers)\b")
    framework_need = "mindspore"
    launcher = launcher_need = "msrun"
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

    def environment(self, launch: Launch) -> Mapping[str, str]:
        """Return the variables of MindSpore's fault tolerance."""
        return tft_environment(launch, launch.ports[1])

    def own_command(self, launch: Launch, script: Path, arguments: tuple[str, ...]) -> Command:
        """Return msrun with the script and its arguments."""
        argv = msrun_argv(launch, script, arguments, master_port=self.launcher_port(launch))
        return Command(argv, self.environment(launch))


KIND = MindSporeJob()
