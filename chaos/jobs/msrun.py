"""Starting ranks with MindSpore's own launcher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaos.jobs.kind import JobError, Launch


def msrun_argv(launch: Launch, script: Path, arguments: Sequence[str], *, master_port: int) -> tuple[str, ...]:
    """The command line of ``msrun`` for all ranks on this host.

    ``--join=False``: with ``--join=True`` msrun kills every rank within a second of the first death, before an
    end-of-life checkpoint can be saved (MindSpore 2.10). Raises JobError where msrun is not beside the interpreter.
    """
    msrun = launch.python.parent / "msrun"
    if not msrun.is_file():
        raise JobError(f"no msrun beside {launch.python}: install MindSpore there (chaos doctor tells more)")
    ranks = launch.scenario.cluster.ranks
    return (
        str(msrun),
        f"--worker_num={ranks}",
        f"--local_worker_num={ranks}",
        "--master_addr=127.0.0.1",
        f"--master_port={master_port}",
        "--join=False",
        f"--log_dir={launch.logs}",
        str(script),
        *arguments,
    )


def tft_environment(protection: Sequence[str], logs: Path, controller_port: int) -> dict[str, str]:
    """Variables by which the ranks learn of the mechanisms that are on, and find the SDK's controller in rank 0."""
    environment = {"TTP_LOG_PATH": str(logs / "ttp")}
    if protection:
        environment |= {
            "MS_ENABLE_TFT": tft_switches(protection),
            "MINDIO_FOR_MINDSPORE": "1",
            "MS_TFT_IP": "127.0.0.1",
            "MS_TFT_PORT": str(controller_port),
        }
    return environment


def tft_switches(protection: Sequence[str]) -> str:
    """The value of MS_ENABLE_TFT for these mechanisms, written as MindSpore's documents do."""
    return "{" + ",".join(f"{mechanism}:1" for mechanism in protection) + "}"
