"""The requirements of an attempt before the job can start: the agent's configuration, the secret, the environment."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos.agent.configuration import Configuration
from chaos.jobs.kind import Command
from chaos.jobs.own_launcher import own_environment
from chaos.machine.job.protocol import LaunchSpec, Place
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.scenario.models.scenario import Scenario

AGENTS = "agents"
"""The name of the agents' socket in a private directory."""

SECRET = "secret"
"""The name of the file with the run's secret in a private directory."""

AGENT_SITE = Path(__file__).parents[2] / "agent" / "site"


def write_secret(private: Path) -> str:
    """Make the run's secret, in a file that only this user can read.

    It appears in no argument, environment or report.
    """
    secret = secrets.token_hex(32)
    path = private / SECRET
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret)
    return secret


def agent_configuration(
    private: Path,
    *,
    token: str,
    attempt: str,
    history: Path,
    extensions: tuple[str, ...],
    scenario: Scenario,
    digest_steps: tuple[int, ...] = (),
    memory: Path | None = None,
    place: Place | None = None,
    stacks: Path | None = None,
) -> str:
    """Return the configuration file's text for the agents of one attempt; on a node, for the agents of that node.

    ``private`` is the run's private directory there, with socket and secret. ``memory`` is the run's directory in
    memory, where it has one. ``stacks`` is the directory for the stacks of the ranks.
    """
    configuration = Configuration(
        run=token,
        attempt=attempt,
        history=str(history),
        socket=str(private / AGENTS),
        secret=str(private / SECRET),
        digest_interval=scenario.job.digest_interval,
        digest_steps=list(digest_steps),
        sample_seed=scenario.job.seed if scenario.needs_samples else None,
        steps_per_update=scenario.job.steps_per_update or 1,
        extensions=list(extensions),
        settings={
            "timings": scenario.job.timings,
            "step_optimizer": scenario.job.step_optimizer,
            "exports": list(scenario.job.exports),
            "seed_at_start": scenario.job.seed if scenario.job.seed_at_start else None,
            "unprotected": not scenario.job.protection and not scenario.job.agent,
            "hccl": None if scenario.job.hccl is None else scenario.job.hccl.model_dump(),
            "storage": {
                "mb_per_second": scenario.job.storage.mb_per_second,
                "memory": None if memory is None else str(memory),
            },
        },
        node=None if place is None else place.node,
        address=None if place is None else place.address,
        meeting=None if place is None else str(place.meeting),
        stacks=None if stacks is None else str(stacks),
    )
    return json.dumps(asdict(configuration))


def write_agent_configuration(private: Path, *, attempt: str, **settings: Any) -> Path:
    """Write :func:`agent_configuration` to the private directory, and return the file's path (CHAOS_AGENT)."""
    path = private / configuration_name(attempt)
    path.write_text(agent_configuration(private, attempt=attempt, **settings), "utf-8")
    return path


def configuration_name(attempt: str) -> str:
    """Return the name of the file that the agents of an attempt read."""
    return f"agent-{attempt}.json"


def launch_spec(
    command: Command,
    *,
    token: str,
    attempt: str,
    configuration: Path,
    python: Path,
    scenario: Scenario,
    cwd: Path,
    log: Path,
    cores: tuple[int, ...] | None,
    collected_exit: Callable[[ProcessIdentity], ExitStatus | None] | None = None,
) -> LaunchSpec:
    """Return the launch: the settings of job kind, scenario and agent, later ones first, over the node's environment.

    ``configuration`` lies in the run's private directory on the node. The harness's entries on PATH and PYTHONPATH
    precede the existing ones: ``msrun`` runs the ``python`` of the PATH.
    """
    own = own_environment(scenario.job, configuration.parent, cores)
    variables = {**own, **command.environment, **scenario.job.environment, "CHAOS_AGENT": str(configuration)}
    site = [AGENT_SITE] if command.agent_by_path else []
    if command.agent_by_path:  # for chaos-agent.pth, where a job's own start script overwrites PYTHONPATH
        variables["CHAOS_AGENT_SITE"] = str(AGENT_SITE)
    before = {"PATH": str(python.parent), "PYTHONPATH": os.pathsep.join(map(str, [*site, *command.path]))}
    return LaunchSpec(token, attempt, command.argv, variables, cwd, log, cores, collected_exit, before)
