"""Starting ranks with MindSpore's own launcher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaos.jobs.kind import JobError, Launch
from chaos.scenario.models.mechanisms import switch_names


def msrun_argv(launch: Launch, script: Path, arguments: Sequence[str], *, master_port: int) -> tuple[str, ...]:
    """Return the command line of ``msrun`` for all ranks on this host, or for those of one node.

    ``--join=False``: with ``--join=True`` msrun kills every rank within a second of the first death, before an
    end-of-life checkpoint can be saved (MindSpore 2.10). Raises JobError if msrun is not beside the interpreter.
    """
    msrun = launch.python.parent / "msrun"
    if launch.place is None and not msrun.is_file():
        raise JobError(f"no msrun beside {launch.python}: install MindSpore there (chaos doctor tells more)")
    ranks, place = launch.scenario.cluster.ranks, launch.place
    return (
        str(msrun),
        f"--worker_num={ranks}",
        f"--local_worker_num={ranks if place is None else len(place.ranks)}",
        *([] if place is None else [f"--node_rank={place.node}"]),
        f"--master_addr={launch.master}",
        f"--master_port={master_port}",
        "--join=False",
        f"--log_dir={launch.logs}",
        str(script),
        *arguments,
    )


def tft_environment(launch: Launch, controller_port: int) -> dict[str, str]:
    """Return variables that tell the ranks which mechanisms are on, and where the SDK's controller is: in rank 0."""
    protection = launch.scenario.job.protection
    environment = {"TTP_LOG_PATH": str(sdk_logs(launch))}
    if protection:
        environment |= {
            "MS_ENABLE_TFT": tft_switches(protection),
            "MINDIO_FOR_MINDSPORE": "1",
            "MS_TFT_IP": launch.master,
            "MS_TFT_PORT": str(controller_port),
        }
    return environment


def sdk_logs(launch: Launch) -> Path:
    """Return the directory of these ranks' SDK logs: each node has a directory of its own.

    The SDK names a log by its process. Every host, and every container, counts processes by itself: two processes could
    write one file, or one of two files would be lost when files are collected.
    """
    return launch.logs / ("ttp" if launch.place is None else f"ttp-node_{launch.place.node}")


def tft_switches(protection: Sequence[str]) -> str:
    """Return the value of MS_ENABLE_TFT for these mechanisms, written as MindSpore's documents do.

    Mechanisms of a launcher have no switch in it.
    """
    return "{" + ",".join(f"{mechanism}:1" for mechanism in protection if mechanism in switch_names()) + "}"
