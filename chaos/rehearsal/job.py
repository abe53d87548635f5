"""The job kind ``rehearsal``: a real MindSpore job on the CPU, with stand-ins for what exists only on Ascend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from chaos.jobs.kind import Command, JobError, Launch, Simulated
from chaos.jobs.msrun import msrun_argv, tft_switches
from chaos.plan.mechanism import NEEDS
from chaos.plan.traits import JobTraits
from chaos.rehearsal.aids import aid_arguments, aid_environment, aid_path, simulated_aids
from chaos.rehearsal.jobs.mnist_files import write_mnist
from chaos.rehearsal.taskd import settings
from chaos.scenario.job import Job
from chaos.scenario.model import Scenario
from chaos.scenario.terms import Phase
from chaos.topology.layout import layout_of

_ROOM = Path(__file__).parent
_BATCH_SIZE = 16
_SHARDS = frozenset({1, 2})
"""The last layer has ten outputs, and every weight is sharded."""
_CHECKPOINTS = "checkpoints"
_PHASES = frozenset(get_args(Phase))


class RehearsalJob:
    """Trains the five-layer network of the power-off checkpoint document, or a script written like it."""

    name = "rehearsal"
    traits = JobTraits(
        observable=_PHASES,
        checkpoint_form="mindspore",
        most_stages=1,
        slices=frozenset({1, 2, 4, 8}),
        shards=_SHARDS,
        storage=_CHECKPOINTS,
        group_info=True,
    )
    needs: tuple[str, ...] = ("mindspore", "numpy", "msrun")
    ports = 2
    extensions: tuple[str, ...] = ("chaos.rehearsal.device", "chaos.rehearsal.storage", "chaos.rehearsal.desk")

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """The device layer always; the SDK where it is the stand-in."""
        parts = [
            Simulated("collectives, cluster formation and the device calls of TrainFaultTolerance", "device layer"),
            Simulated("optimizer update report (TensorReport)", "device layer"),
        ]
        if is_sliced(scenario):
            parts.append(Simulated("slices and layouts of the weights, which the graph compiler makes", "job"))
        if scenario.job.tre is not None:
            parts.append(Simulated("watch over the global norm, in place of MindFormers' TrainingStateMonitor", "job"))
        if sdk == "standin" and needs_sdk(scenario.job):
            parts.append(Simulated(f"mindio_ttp, timings {scenario.job.timings}", "SDK"))
        parts.extend(_simulated_faults(scenario))
        if scenario.job.agent:
            parts.append(Simulated(f"taskd and its manager, timings {scenario.job.timings}", "cluster agent"))
        elif needs_sdk(scenario.job) and scenario.job.controller == "outside":
            parts.append(Simulated("host of the SDK's controller outside the ranks", "cluster agent"))
        if scenario.cluster.nodes > 1:
            parts.append(Simulated(f"{scenario.cluster.nodes} nodes: groups of ranks on one host", "platform"))
        parts.extend(simulated_aids(scenario.job))
        return tuple(parts)

    def prepare(self, launch: Launch) -> None:
        """Make the training data: as many pictures as one epoch of all data-parallel ranks reads."""
        job = launch.scenario.job
        images = _steps_per_epoch(job) * _BATCH_SIZE * layout_of(launch.scenario.cluster).data
        write_mnist(str(launch.directory / "data"), images=images, seed=job.seed)
        _write_stale_record(job, launch.directory / "checkpoints")

    def command(self, launch: Launch) -> Command:
        """msrun with the script's arguments, the protection switches and the stand-in SDK."""
        job = launch.scenario.job
        master_port, controller_port = launch.ports
        arguments = (
            "--device=CPU",
            f"--data={launch.directory / 'data'}",
            f"--output={launch.directory / _CHECKPOINTS}",
            f"--steps={job.steps}",
            f"--steps-per-epoch={_steps_per_epoch(job)}",
            f"--batch-size={_BATCH_SIZE}",
            f"--checkpoint-interval={job.checkpoint_interval or 0}",
            f"--seed={job.seed}",
            f"--is-recover={int(launch.resume)}",
            *_slicing(launch.scenario),
            *(["--continue"] if "RSC" in job.protection and job.checkpoint_interval else []),
            *aid_arguments(job),
            *_norm_arguments(job),
            *job.arguments,
        )
        environment = {
            "OMP_NUM_THREADS": "1",
            "TTP_LOG_PATH": str(launch.logs / "ttp"),
            **aid_environment(job, launch.directory),
        }
        sdk = needs_sdk(job)
        if job.protection:
            environment["MS_ENABLE_TFT"] = tft_switches(job.protection)
        if sdk:
            environment |= {
                "MINDIO_FOR_MINDSPORE": "1",
                "MS_TFT_IP": "127.0.0.1",
                "MS_TFT_PORT": str(controller_port),
            }
        if sdk and job.controller == "outside":
            environment["MINDX_TASK_ID"] = "rehearsal"  # MindSpore starts no controller in rank 0 then
        # A job that protects itself without the SDK finds none: that it needs none is shown, not assumed.
        standin = (_ROOM / "sdk",) if launch.sdk == "standin" and sdk else ()
        path = (*standin, *aid_path(job))
        if job.agent:
            environment |= _agent_environment(launch)
            path = (*path, _ROOM / "taskd" / "site")
        script = _script(launch.scenario, launch.scenario_directory)
        argv = msrun_argv(launch, script, arguments, master_port=master_port)
        if "MINDX_TASK_ID" in environment and not job.agent:
            ranks = launch.scenario.cluster.ranks
            outside = ("-m", "chaos.rehearsal.ttp.outside", str(ranks), "127.0.0.1", str(controller_port))
            argv = (str(launch.python), *outside, *argv)
        return Command(argv, environment, path)

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """The script and everything in this room: any of it may change a loss."""
        script = _script(scenario, scenario_directory)
        room = hashlib.sha256()
        for file in sorted(_ROOM.rglob("*.py")):
            room.update(str(file.relative_to(_ROOM)).encode() + b"\0" + file.read_bytes())
        return {"script": hashlib.sha256(script.read_bytes()).hexdigest(), "rehearsal": room.hexdigest()}


def _agent_environment(launch: Launch) -> dict[str, str]:
    """What the cluster agent is told: in production by the cluster's manager, here by variables."""
    scenario = launch.scenario
    return {
        settings.STRATEGIES: ",".join(scenario.job.strategies),
        settings.RESTART_LIMIT: str(scenario.job.restart_limit),
        settings.RANKS: str(scenario.cluster.ranks),
        settings.NODES: str(scenario.cluster.nodes),
        settings.TIMINGS: scenario.job.timings,
        settings.LOGS: str(launch.logs),
    }


def _simulated_faults(scenario: Scenario) -> Iterator[Simulated]:
    """What a fault needs that only a device or a cluster has."""
    kinds = {fault.kind for fault in scenario.faults}
    if kinds & {"uce", "ecc"}:
        yield Simulated("loss of device memory, its strategy and the times of error and update", "device layer")
    if "pause" in kinds:
        yield Simulated("the cluster's orders to pause, to switch the network and to go on", "cluster agent")
    if any(fault.kind == "pause" and fault.parameters.get("switch") for fault in scenario.faults):
        yield Simulated("networks: two paths of the communicator's sockets on one host", "device layer")


def needs_sdk(job: Job) -> bool:
    """Whether a mechanism of the vendor's SDK is on, or an agent that hosts its controller.

    By the document's table TRE needs none.
    """
    return job.agent or any(mechanism in NEEDS["MindIO"] for mechanism in job.protection)


def _norm_arguments(job: Job) -> tuple[str, ...]:
    if job.tre is None:
        return ()
    return (
        f"--norm-threshold={job.tre.threshold!r}",
        f"--skip-data={int(job.tre.skip_data)}",
    )


def _write_stale_record(job: Job, output: Path) -> None:
    """The record that an earlier run in the same output directory has left, if the scenario wants one."""
    if job.tre is None or not job.tre.recorded:
        return
    output.mkdir(parents=True, exist_ok=True)
    record = {str(step): [job.tre.threshold] for step in job.tre.recorded}
    (output / "abnormal_global_norm.json").write_text(json.dumps(record), "utf-8")


def _steps_per_epoch(job: Job) -> int:
    return job.steps_per_epoch or job.steps


def _slicing(scenario: Scenario) -> tuple[str, ...]:
    """Arguments by which the script slices its weights; none where every rank holds all of them."""
    if not is_sliced(scenario):
        return ()
    layout = layout_of(scenario.cluster)
    return (f"--model-parallel={layout.model}", f"--optimizer-shards={layout.shards}")


def is_sliced(scenario: Scenario) -> bool:
    """Whether the job's own script is the one with sliced weights."""
    layout = layout_of(scenario.cluster)
    return scenario.job.script is None and (layout.model > 1 or layout.shards > 1)


def _script(scenario: Scenario, directory: Path) -> Path:
    if scenario.job.script is None:
        return _ROOM / "jobs" / ("sliced.py" if is_sliced(scenario) else "mnist.py")
    script = directory / scenario.job.script
    own = _ROOM / "jobs" / scenario.job.script
    if not script.is_file() and not own.is_file():
        raise JobError(f"job.script: there is no file {script}, and none of this kind's own jobs has that name")
    return script if script.is_file() else own


KIND = RehearsalJob()
