"""The job kind ``torch-rehearsal``: real torchrun, PyTorch and DDP on a CPU, under a stand-in of MindIO TFT.

The device layer and the framework's loop are stand-ins as well; of MindSpeed-LLM nothing is rehearsed but the calls
that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from chaos.jobs.kind import Command, JobError, Launch, Simulated
from chaos.jobs.torch.job import TorchJob
from chaos.jobs.torch.own_python import OwnPython
from chaos.jobs.torch.probe import torch
from chaos.jobs.torch.torchrun import TORCHRUN, torchrun_argv, torchrun_environment
from chaos.plan.recovery.vendor import Vendor
from chaos.plan.traits import JobTraits
from chaos.rehearsal.protection import (
    needs_sdk,
    protection_environment,
    protection_path,
    room_digest,
    simulated_protection,
)
from chaos.rehearsal.torch.rules import check
from chaos.scenario.models.job import allowed
from chaos.scenario.models.scenario import Scenario

_ROOM = Path(__file__).parent
_CHECKPOINTS = "checkpoints"
_EDITED = "chaos.rehearsal.torch.edited_torchrun"
_UNDER_TASKD = "chaos.rehearsal.torch.taskd_torchrun"
_HAS = {"job.agent", "job.torchrun.edited"}
_ARGUMENTS = {
    "dump": "--enable-high-availability",
    "retry": "--enable-hbmfault-repair",
    "recover": "--enable-worker-reboot",
}


class TorchRehearsalJob(OwnPython):
    """Trains a small network by a loop like Megatron's."""

    name = "torch-rehearsal"
    traits = JobTraits(
        observable=TorchJob.traits.observable,
        checkpoint_form="megatron",
        file_format="pt",
        gathers_by=1,
        most_stages=1,
        slices=frozenset({1}),
        shards=frozenset({1}),
        storage=_CHECKPOINTS,
        spikes=frozenset(),
        gradients=False,
        mindspore=False,
        own_python=True,
        mechanisms=frozenset({"TTP", "UCE", "HCCE", "TSP", "ARF"}),
        vendor=Vendor(
            framework="MindIO TFT",
            document="MindCluster, MindIO TFT with MindSpeed-LLM",
            losses="MindCluster, MindIO TFT, constraints",
            cleans_before_saving=True,
            exit_code=2,
        ),
        ports={"controller": 1},
        own_ports=frozenset({"communicator"}),
        rules=check,
        lacks={
            **{key: why for key, why in TorchJob.traits.lacks.items() if key not in _HAS},
            "job.script": "has a loop of its own and runs no script",
            "job.command": "is started by torchrun",
            "job.checkpoint_interval": "saves end-of-life checkpoints only",
        },
    )
    needs: tuple[str, ...] = ("torch", "numpy")
    packages = ("torch", "numpy")
    probes = MappingProxyType({"torch": torch})
    ports = 2
    extensions: tuple[str, ...] = (
        "chaos.agent.torch.rank_logs",
        "chaos.rehearsal.torch.device",
        "chaos.rehearsal.control_endpoint",
    )

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return loop and device layer always; the SDK where it is the stand-in."""
        return (
            Simulated("a training loop like Megatron's; MindSpeed-LLM is not rehearsed", "framework"),
            Simulated("torch_npu, and the backend hccl of torch.distributed", "device layer"),
            *simulated_protection(scenario, sdk),
        )

    def prepare(self, launch: Launch) -> None:
        """Prepare nothing: the job makes its own input. Raises JobError for the vendor's SDK."""
        if launch.sdk != "standin" and needs_sdk(launch.scenario.job):
            raise JobError(
                f"job kind {self.name} has not been run with the vendor's MindIO TFT: its stand-in of torch_npu lacks "
                "parts that the vendor's package asks for; use --sdk standin"
            )

    def command(self, launch: Launch) -> Command:
        """Return torchrun with the loop, the protection switches and the stand-in SDK."""
        scenario, job = launch.scenario, launch.scenario.job
        torchrun_port, controller_port = launch.ports
        script = (
            *("-m", "chaos.rehearsal.torch.train"),
            f"--save={launch.directory / _CHECKPOINTS}",
            f"--train-iters={job.steps}",
            f"--seed={job.seed}",
            *(["--load"] if launch.resume else []),
            *_switches(scenario),
            # The controller looks every 50 ms for a requested pause; a step or two may pass meanwhile, not five.
            *(["--step-seconds=0.05"] if "TSP" in job.protection else []),
            *job.arguments,
        )
        environment = {
            **torchrun_environment(launch),
            **_sdk_environment(launch, controller_port),
        }
        path = (_ROOM / "site", *protection_path(launch))
        program = _UNDER_TASKD if job.agent else _EDITED if job.torchrun.edited else TORCHRUN
        argv = torchrun_argv(launch, script, port=torchrun_port, restarts=0, program=program)
        return Command(argv, environment, path)

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return everything in the rehearsal's room, and the interpreter's releases: any of it may change a loss."""
        return {"rehearsal": room_digest(), **self.releases(scenario, scenario_directory)}


def _switches(scenario: Scenario) -> tuple[str, ...]:
    """Return MindSpeed-LLM's arguments for the mechanisms that are on; the first one is needed for all others."""
    on = allowed(scenario.job.protection) if needs_sdk(scenario.job) else ()
    return tuple(argument for word, argument in _ARGUMENTS.items() if word in on)


def _sdk_environment(launch: Launch, port: int) -> dict[str, str]:
    """Return the variables by which the loop finds the controller.

    MindSpeed-LLM has port 8000 for all jobs of a host, and no variable for it: here it is a free port.
    """
    environment = protection_environment(launch, port)
    environment.pop("MINDIO_FOR_MINDSPORE", None)
    if needs_sdk(launch.scenario.job):
        environment |= {"TTP_ADDR": launch.master, "TTP_PORT": str(port)}
    return environment


KIND = TorchRehearsalJob()
