"""Starting ranks by a program of the user's own (``job.command``): any argv, with the ranks found by their environment.

The program gets the ranks' command line as its last arguments, as mpirun and torchrun do. What it starts belongs to the
launch, since it inherits the run's variables; a rank is what has the number of one in its environment.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from chaos.agent.launcher.rank_variables import KNOWN, VARIABLE, written
from chaos.base.plain_files import read_plain
from chaos.jobs.kind import JobError, Launch
from chaos.scenario.models.job import Job

_PLACE = re.compile(r"\{(\w+)\}")

PLACES = ("ranks", "local_ranks", "first_rank", "node", "nodes", "master", "port", "logs", "python")
"""Names that ``job.command`` may have in braces."""

_BINDING = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
"""Variables by which Open MPI 4 and Open MPI 5 bind ranks to cores."""


def own_argv(launch: Launch, rank_command: Sequence[str], *, port: int) -> tuple[str, ...]:
    """Return the launcher's command line for all ranks, or for those of one node, with that of a rank behind it.

    A word that names a file beside the scenario becomes its full path, since the job's own directory is another one.
    """
    assert launch.scenario.job.command is not None
    ranks, place = launch.scenario.cluster.ranks, launch.place
    values = {
        "ranks": ranks,
        "local_ranks": ranks if place is None else len(place.ranks),
        "first_rank": 0 if place is None else place.ranks[0],
        "node": 0 if place is None else place.node,
        "nodes": 1 if place is None else place.nodes,
        "master": launch.master,
        "port": port,
        "logs": launch.logs,
        "python": launch.python,
    }
    words = [
        _PLACE.sub(lambda match: str(values[match[1]]), _resolved(word, launch.scenario_directory))
        for word in launch.scenario.job.command
    ]
    return (*words, *rank_command)


def rank_environment(job: Job) -> dict[str, str]:
    """Return the variable by which every process of the launch knows how ranks are numbered; none for msrun."""
    if job.command is None:
        return {}
    return {VARIABLE: written(tuple(job.rank_variables.items()) or KNOWN)}


def own_environment(job: Job, private: Path, cores: Sequence[int] | None) -> dict[str, str]:
    """Return variables that keep a launcher's files in the run's private directory, and its ranks on the run's cores.

    torchrun leaves its directory of logs in the directory for temporary files, and so does Open MPI's session when
    mpirun is killed. mpirun gives each rank a core of the whole machine, whatever cores it may use itself.
    """
    if job.command is None:
        return {}
    return {"TMPDIR": str(private), **(dict.fromkeys(_BINDING, "none") if cores else {})}


def own_digests(job: Job, directory: Path) -> dict[str, str]:
    """Return digests of the files beside the scenario that the command names: the launcher may decide about a loss.

    Raises JobError for a file that cannot be read.
    """
    digests = {}
    for word in job.command or ():
        path = Path(_resolved(word, directory))
        if path.is_absolute() and not Path(word).is_absolute():
            try:
                digests[f"launcher {word}"] = hashlib.sha256(read_plain(path)).hexdigest()
            except OSError as error:
                raise JobError(f"job.command: {error}") from error
    return digests


def check_command(job: Job) -> None:
    """Raise JobError for a place in braces that nothing fills."""
    for word in job.command or ():
        for name in _PLACE.findall(word):
            if name not in PLACES:
                raise JobError(f"job.command: {{{name}}} is filled by nothing; known are {', '.join(PLACES)}")


def _resolved(word: str, directory: Path) -> str:
    path = directory / word
    return str(path) if word and not Path(word).is_absolute() and path.is_file() else word
