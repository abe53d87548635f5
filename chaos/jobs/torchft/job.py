"""The job kind ``torchft``: a user's own training script, one process for each replica group, and a lighthouse.

torchft, its lighthouse and the script are genuine. The harness runs the groups, and starts a failed group again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.agent.launcher.rank_variables import VARIABLE, written
from chaos.jobs.kind import Command, Launch, Simulated
from chaos.jobs.script_job import ScriptJob
from chaos.jobs.torch.probe import torch
from chaos.jobs.torchft import replica_groups
from chaos.jobs.torchft.probe import torchft
from chaos.jobs.torchft.replica_groups import LIGHTHOUSE
from chaos.jobs.torchft.rules import MOST_GROUPS, check_groups
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

_GROUPS = (("REPLICA_GROUP_ID", "NUM_REPLICA_GROUPS"),)
_OF_THE_SCRIPT = "leaves that to the script: use job.arguments"
_TIMEOUTS = ("TORCHFT_TIMEOUT_SEC", "TORCHFT_QUORUM_TIMEOUT_SEC", "TORCHFT_CONNECT_TIMEOUT_SEC")
"""Variables that count for more than what the script gives to its manager (torchft 0.2)."""


class TorchftJob(ScriptJob):
    """Starts the lighthouse, and the scenario's script for each group, in a directory of the run."""

    name = "torchft"
    framework = re.compile(rb"\btorch(ft)?\b")
    framework_need = "torchft"
    launcher = "replica_groups.py"
    traits = JobTraits(
        # Nothing is saved to files: a group gets its state from another one.
        observable=frozenset({"step.begin", "forward", "optimizer.update", "step.end"}),
        checkpoint_form=None,
        genuine=True,
        spikes=frozenset(),
        gradients=False,
        own_script=False,
        mindspore=False,
        vendor=None,
        launcher_restarts=True,
        file_format=None,
        mechanisms=frozenset({"FT"}),
        most_stages=1,
        slices=frozenset({1}),
        rules=check_groups,
        coordinators=frozenset({LIGHTHOUSE}),
        most_ranks=MOST_GROUPS,
        lacks={
            "job.agent": "starts no cluster agent: its own launcher starts a group again",
            "job.tre": _OF_THE_SCRIPT,
            "job.hccl": "has torchft's own collectives",
            "job.graph": _OF_THE_SCRIPT,
            "job.compile_cache": "keeps no graphs of MindSpore's",
            "job.storage.mb_per_second": "holds no storage back",
            "job.storage.asynchronous_saving": _OF_THE_SCRIPT,
            "job.storage.memory": "keeps no checkpoint in memory",
        },
    )
    examples: Mapping[str, Mapping[str, Any]] = {}
    needs = ("torch", "torchft")
    probes = MappingProxyType({"torch": torch, "torchft": torchft})
    ports = 1 + MOST_GROUPS
    extensions = ("chaos.agent.torch.rank_logs",)

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return what starts a group again: the harness does, and no scheduler."""
        del scenario, sdk
        return (Simulated("new starts of replica groups, by a launcher of the harness on one host", "scheduler"),)

    def environment(self, launch: Launch) -> Mapping[str, str]:
        """Return the environment of all groups: how they are numbered, the loopback interface, torchft's timeouts."""
        timeout = str(round(launch.scenario.job.torchft.timeout))
        return {
            VARIABLE: written(_GROUPS),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            **dict.fromkeys(_TIMEOUTS, timeout),
        }

    def own_command(self, launch: Launch, script: Path, arguments: tuple[str, ...]) -> Command:
        """Return the program that runs the lighthouse and the groups."""
        scenario, options = launch.scenario, launch.scenario.job.torchft
        values = {
            "groups": scenario.cluster.ranks,
            "restarts": scenario.job.restart_limit if scenario.job.protection else 0,
            "min_groups": options.min_groups,
            "join_timeout": round(options.join_timeout * 1000),
            "heartbeat_timeout": round(options.heartbeat_timeout * 1000),
            "ports": launch.ports[: 1 + scenario.cluster.ranks],
        }
        python = str(launch.python)
        argv = (python, replica_groups.__file__, json.dumps(values), python, str(script), *arguments)
        return Command(argv, self.environment(launch))


KIND = TorchftJob()
