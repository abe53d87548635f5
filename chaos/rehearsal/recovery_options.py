"""Settings that shorten a recovery, at the start of a rehearsed job: arguments, environment, stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chaos.jobs.kind import Simulated
from chaos.plan.parts.recovery_options import WATCHDOG_POLL_SECONDS
from chaos.scenario.models.job import Job

_ACP = Path(__file__).parent / "acp" / "site"


def option_arguments(job: Job) -> tuple[str, ...]:
    """Return arguments for the job's script; none where the scenario asks for nothing."""
    arguments = ["--graph=1"] if job.graph else []
    if job.storage.asynchronous_saving:
        arguments.append("--asynchronous-saving=1")
    return tuple(arguments)


def option_environment(job: Job, directory: Path) -> dict[str, str]:
    """Return environment variables of every process; ``directory`` is the job's own and outlives a launch."""
    if not job.graph:
        # Without just-in-time compilation the optimizer wrapper runs as written; compiled, its int32 all-reduce
        # would be refused on a CPU.
        return {"MS_JIT": "0"}
    # Also without a cache both are said: the machine's own environment may have a cache, and hide warnings. The lines
    # that tell whether a cache was used are warnings.
    environment = {"MS_COMPILER_CACHE_ENABLE": str(int(job.compile_cache)), "GLOG_v": "2"}
    if job.compile_cache:
        environment["MS_COMPILER_CACHE_PATH"] = str(directory / "compile_cache")
    return environment


def option_path(job: Job) -> tuple[Path, ...]:
    """Return the directories of stand-ins that MindSpore must find."""
    return (_ACP,) if job.storage.memory else ()


def simulated_options(job: Job) -> Iterator[Simulated]:
    """Yield the stand-ins among these options, with every factor that is not the vendor's."""
    if job.hccl is not None:
        scale, timeout = job.hccl.time_scale, job.hccl.exec_timeout
        poll = f", watchdog poll {WATCHDOG_POLL_SECONDS:g} s to {WATCHDOG_POLL_SECONDS * scale:g} s"
        times = f"HCCL_EXEC_TIMEOUT {timeout:g} s scaled by {scale:g} to {timeout * scale:g} s"
        yield Simulated(f"collectives' {times}{poll if job.hccl.watchdog else ', watchdog off'}", "device layer")
    if job.storage.mb_per_second is not None:
        yield Simulated(f"storage held to {job.storage.mb_per_second:g} MB/s, for each file", "file system")
    if job.storage.memory:
        yield Simulated("mindio_acp: the latest checkpoint of every rank in memory", "SDK")
    if job.graph:
        yield Simulated("gradient all-reduce between two graphs, not in one", "device layer")
