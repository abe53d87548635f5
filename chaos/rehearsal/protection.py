"""The protection of a rehearsed job, whatever it trains on: variables, stand-ins, hosts of parts outside the ranks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from chaos.jobs.kind import JobError, Launch, Simulated
from chaos.jobs.msrun import sdk_logs, tft_switches
from chaos.plan.recovery.mechanism import NEEDS
from chaos.platforms.kind import platform_kind
from chaos.rehearsal.device.addresses import why_open
from chaos.rehearsal.taskd import settings
from chaos.scenario.models.job import Job
from chaos.scenario.models.scenario import Scenario

_ROOM = Path(__file__).parent
_TASK = "MINDX_TASK_ID"
"""Where it is set no controller is started in rank 0: a host outside the ranks runs it."""


def needs_sdk(job: Job) -> bool:
    """Return whether a mechanism of the vendor's SDK is on, or an agent that hosts its controller.

    By the document's table TRE needs none.
    """
    return job.agent or any(mechanism in NEEDS["MindIO"] for mechanism in job.protection)


def protection_environment(launch: Launch, controller_port: int) -> dict[str, str]:
    """Return the variables by which the ranks, and the controller's host, learn of the mechanisms that are on.

    Raises JobError where a stand-in would have to listen on a network that is not private.
    """
    if launch.place is not None and (why := why_open(launch.place.address)) is not None:
        raise JobError(f"stand-ins listen on a private network only: the address of node {launch.place.node}, {why}")
    job = launch.scenario.job
    environment = {"OMP_NUM_THREADS": "1", "TTP_LOG_PATH": str(sdk_logs(launch))}
    if job.protection:
        environment["MS_ENABLE_TFT"] = tft_switches(job.protection)
    if needs_sdk(job):
        environment |= {
            "MINDIO_FOR_MINDSPORE": "1",
            "MS_TFT_IP": launch.master,
            "MS_TFT_PORT": str(controller_port),
        }
        if job.controller == "outside":
            environment[_TASK] = "rehearsal"
    if job.agent:
        environment |= _agent_environment(launch)
    return environment


def protection_path(launch: Launch) -> tuple[Path, ...]:
    """Return the directories of the stand-ins that this job must find.

    A job that protects itself without the SDK finds none: the run proves that it needs none.
    """
    job = launch.scenario.job
    standin = (_ROOM / "sdk",) if launch.sdk == "standin" and needs_sdk(job) else ()
    return (*standin, *([_ROOM / "taskd" / "site"] if job.agent else []))


def with_controller(launch: Launch, argv: tuple[str, ...], controller_port: int) -> tuple[str, ...]:
    """Return the launcher's command line, behind the controller's where that lives outside ranks and agent."""
    job = launch.scenario.job
    elsewhere = launch.place is not None and launch.place.node > 0
    if not needs_sdk(job) or job.controller != "outside" or job.agent or elsewhere:
        return argv
    ranks = launch.scenario.cluster.ranks
    outside = ("-m", "chaos.rehearsal.ttp.outside", str(ranks), launch.master, str(controller_port))
    return (str(launch.python), *outside, *argv)


def simulated_protection(scenario: Scenario, sdk: str) -> Iterator[Simulated]:
    """Yield the stand-ins among SDK, agent, faults and cluster."""
    job = scenario.job
    if sdk == "standin" and needs_sdk(job):
        yield Simulated(f"mindio_ttp, timings {job.timings}", "SDK")
    yield from _simulated_faults(scenario)
    if job.agent:
        yield Simulated(f"taskd and its manager, timings {job.timings}", "cluster agent")
    elif needs_sdk(job) and job.controller == "outside":
        yield Simulated("host of the SDK's controller outside the ranks", "cluster agent")
    cluster = scenario.cluster
    if cluster.nodes > 1 and not cluster.network and platform_kind(cluster.platform).traits.one_launcher:
        yield Simulated(f"{cluster.nodes} nodes: groups of ranks on one host", "platform")


def steps_per_epoch(job: Job) -> int:
    """Return the number of batches in one epoch."""
    return job.steps_per_epoch or job.steps


def write_stale_record(job: Job, output: Path) -> None:
    """Write an earlier run's record into the output directory, if the scenario asks for one."""
    if job.tre is None or not job.tre.recorded:
        return
    output.mkdir(parents=True, exist_ok=True)
    record = {str(step): [job.tre.threshold] for step in job.tre.recorded}
    (output / "abnormal_global_norm.json").write_text(json.dumps(record), "utf-8")


def room_digest() -> str:
    """Return a digest of every Python file of this package: any of them may change a loss.

    Each run asks three times before its job starts, so the hundred files are paths as text.
    """
    above = len(str(_ROOM)) + 1
    paths = [os.path.join(place, name) for place, _, names in os.walk(_ROOM) for name in names if name.endswith(".py")]
    room = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb", buffering=0) as file:
            room.update(path[above:].encode() + b"\0" + file.read())
    return room.hexdigest()


def _agent_environment(launch: Launch) -> dict[str, str]:
    """Return the cluster agent's settings: in production the cluster's manager gives them, here variables do."""
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
    """Yield the parts of a fault that only a device or a cluster has."""
    kinds = {fault.kind for fault in scenario.faults}
    if kinds & {"uce", "ecc"}:
        yield Simulated("loss of device memory, its strategy and the times of error and update", "device layer")
    if kinds & {"suspect-remote", "link-error"}:
        yield Simulated("the device's error, raised where the framework would get it", "device layer")
    if kinds & {"flip-bit", "wrong-batch", "nonfinite-loss"}:
        yield Simulated("a value that a defective device or loader would change", "device layer")
    if "pause" in kinds:
        yield Simulated("the cluster's orders to pause, to switch the network and to go on", "cluster agent")
    if any(fault.kind == "pause" and fault.parameters.get("switch") for fault in scenario.faults):
        yield Simulated("networks: two paths of the communicator's sockets on one host", "device layer")
