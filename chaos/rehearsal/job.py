"""The job kind ``rehearsal``: a real MindSpore job on the CPU, with stand-ins for the Ascend-only parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from chaos.jobs.kind import Command, JobError, JobKind, Launch, Simulated
from chaos.jobs.msrun import msrun_argv
from chaos.plan.topology.layout import layout_of
from chaos.plan.traits import JobTraits
from chaos.rehearsal.jobs.mnist_files import write_mnist
from chaos.rehearsal.protection import (
    protection_environment,
    protection_path,
    room_digest,
    simulated_protection,
    steps_per_epoch,
    with_controller,
    write_stale_record,
)
from chaos.rehearsal.recovery_options import option_arguments, option_environment, option_path, simulated_options
from chaos.scenario.local_files import file_problem
from chaos.scenario.models.job import Job
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Phase

_ROOM = Path(__file__).parent
_BATCH_SIZE = 16
_SHARDS = frozenset({1, 2})
"""The last layer has ten outputs, and every weight is sharded."""
_CHECKPOINTS = "checkpoints"
_PHASES = frozenset(get_args(Phase))


class RehearsalJob(JobKind):
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
        any_replica=True,
        alters=frozenset({"gradient", "weight"}),
        ports={"controller": 1},  # the scheduler has nothing to do, and nobody calls it
        own_ports=frozenset({"communicator"}),
        same_losses=frozenset({"protection", "strategies", "agent", "restart_limit"}),
    )
    needs: tuple[str, ...] = ("mindspore", "numpy", "msrun")
    ports = 2
    extensions: tuple[str, ...] = (
        "chaos.rehearsal.device.device",
        "chaos.rehearsal.in_rank.storage",
        "chaos.rehearsal.control_endpoint",
    )

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return the device layer always; the SDK where it is the stand-in."""
        parts = [
            Simulated("collectives, cluster formation and the device calls of TrainFaultTolerance", "device layer"),
            Simulated("optimizer update report (TensorReport)", "device layer"),
            Simulated("pictures made from a seed, in the format of MNIST", "job"),
        ]
        if is_sliced(scenario):
            parts.append(Simulated("slices and layouts of the weights, which the graph compiler makes", "job"))
        if scenario.job.tre is not None:
            parts.append(Simulated("watch over the global norm, in place of MindFormers' TrainingStateMonitor", "job"))
        parts.extend(simulated_protection(scenario, sdk))
        parts.extend(simulated_options(scenario.job))
        return tuple(parts)

    def prepare(self, launch: Launch) -> None:
        """Make the training data: as many pictures as one epoch of all data-parallel ranks reads."""
        job = launch.scenario.job
        images = steps_per_epoch(job) * _BATCH_SIZE * layout_of(launch.scenario.cluster).data
        write_mnist(str(launch.directory / "data"), images=images, seed=job.seed)
        write_stale_record(job, launch.directory / "checkpoints")

    def command(self, launch: Launch) -> Command:
        """Return msrun with the script's arguments, the protection switches and the stand-in SDK."""
        job = launch.scenario.job
        master_port, controller_port = launch.ports
        arguments = (
            "--device=CPU",
            f"--data={launch.directory / 'data'}",
            f"--output={launch.directory / _CHECKPOINTS}",
            f"--steps={job.steps}",
            f"--steps-per-epoch={steps_per_epoch(job)}",
            f"--batch-size={_BATCH_SIZE}",
            f"--checkpoint-interval={job.checkpoint_interval or 0}",
            f"--seed={job.seed}",
            f"--is-recover={int(launch.resume)}",
            *_slicing(launch.scenario),
            *(["--continue"] if "RSC" in job.protection and job.checkpoint_interval else []),
            *option_arguments(job),
            *_norm_arguments(job),
            *job.arguments,
        )
        environment = {
            **protection_environment(launch, controller_port),
            **option_environment(job, launch.directory),
        }
        path = (*protection_path(launch), *option_path(job))
        script = _script(launch.scenario, launch.scenario_directory)
        argv = msrun_argv(launch, script, arguments, master_port=master_port)
        return Command(with_controller(launch, argv, controller_port), environment, path)

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Yield the script, where it cannot be read and this kind has none of that name."""
        named = scenario.job.script
        if named is None or (_ROOM / "jobs" / named).is_file():
            return
        if why := file_problem(path := directory / named):
            hint = "name it relative to the scenario's file, or in full; none of this kind's own jobs has that name"
            yield "job.script", f"{path}: {why}", hint

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the script and everything in this room: any of it may change a loss."""
        script = _script(scenario, scenario_directory)
        return {"script": hashlib.sha256(script.read_bytes()).hexdigest(), "rehearsal": room_digest()}


def _norm_arguments(job: Job) -> tuple[str, ...]:
    if job.tre is None:
        return ()
    return (
        f"--norm-threshold={job.tre.threshold!r}",
        f"--skip-data={int(job.tre.skip_data)}",
    )


def _slicing(scenario: Scenario) -> tuple[str, ...]:
    """Return the script's arguments for slicing its weights; none where every rank holds all of them."""
    if not is_sliced(scenario):
        return ()
    layout = layout_of(scenario.cluster)
    return (f"--model-parallel={layout.model}", f"--optimizer-shards={layout.shards}")


def is_sliced(scenario: Scenario) -> bool:
    """Return whether the job's own script is the one with sliced weights."""
    layout = layout_of(scenario.cluster)
    return scenario.job.script is None and (layout.model > 1 or layout.shards > 1)


def _script(scenario: Scenario, directory: Path) -> Path:
    if scenario.job.script is None:
        return _ROOM / "jobs" / ("sliced.py" if is_sliced(scenario) else "mnist.py")
    script = (directory / scenario.job.script).resolve()  # the job's own directory is another one
    shipped = _ROOM / "jobs" / scenario.job.script
    if not script.is_file() and not shipped.is_file():
        raise JobError(f"job.script: there is no file {script}, and none of this kind's own jobs has that name")
    return script if script.is_file() else shipped


KIND = RehearsalJob()
