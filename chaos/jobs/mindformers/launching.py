"""The start of the ranks of a MindFormers job: by the checkout's own script, or by msrun."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from chaos.jobs.inputs import sources_digest
from chaos.jobs.kind import JobError, Launch
from chaos.jobs.msrun import msrun_argv
from chaos.scenario.models.scenario import Scenario

PROGRAM = "run_mindformer.py"
LAUNCHER = "scripts/msrun_launcher.sh"

_OWN_PROGRAM = Path(__file__).parent / "program.py"
_CLUSTER_SECONDS = 600
"""msrun's own default; the script's is two hours, longer than any deadline of a run."""


def argv(launch: Launch, configuration: Path, *, master_port: int) -> tuple[str, ...]:
    """Return the command line that trains from this configuration.

    With a checkout and several ranks it is the checkout's ``scripts/msrun_launcher.sh``, on several nodes in the form
    that names this node. With one rank that script ends with status 0 and trains nothing (MindFormers
    1.0 to 2.1), so msrun starts a single rank, and every job without a checkout. Raises JobError.
    """
    arguments = (f"--config={configuration}", *launch.scenario.job.arguments)
    checkout = checkout_of(launch)
    if checkout is None:
        return msrun_argv(launch, _OWN_PROGRAM, arguments, master_port=master_port)
    program, script = checkout / PROGRAM, checkout / LAUNCHER
    if not program.is_file():
        raise JobError(f"job.checkout: there is no file {program}: name the directory that holds {PROGRAM}")
    ranks = launch.scenario.cluster.ranks
    if ranks == 1 or not script.is_file():
        return msrun_argv(launch, program, arguments, master_port=master_port)
    _refuse_blanks(launch.logs)
    order = shlex.join((str(program), *arguments))
    place = launch.place
    nodes = () if place is None else (str(len(place.ranks)), launch.master)
    which = () if place is None else (str(place.node),)
    ends = (str(launch.logs), "False", str(_CLUSTER_SECONDS))
    return ("bash", str(script), order, str(ranks), *nodes, str(master_port), *which, *ends)


def checkout_of(launch: Launch) -> Path | None:
    """Return the checkout that the scenario names, absolute; None if the installed package is used."""
    return named_checkout(launch.scenario, launch.scenario_directory)


def named_checkout(scenario: Scenario, directory: Path) -> Path | None:
    """Return the checkout that a scenario in this directory names, absolute."""
    named = scenario.job.checkout
    return None if named is None else Path(os.path.normpath(directory.absolute() / named))


def source_digest(checkout: Path) -> str:
    """Return a digest of all of the checkout's Python files and of its launcher."""
    return sources_digest(checkout, (checkout / LAUNCHER,))


def _refuse_blanks(logs: Path) -> None:
    """Refuse a log directory with blanks: the script does not quote it."""
    if shlex.quote(str(logs)) != str(logs):
        raise JobError(f"{LAUNCHER} cannot log to {logs}: choose a reports directory without blanks and quotes")
