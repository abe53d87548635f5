"""The agent's configuration by the harness: one JSON file for an attempt, named by CHAOS_AGENT."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.agent.launcher.rank_variables import pairs_of, place_by
from chaos.agent.launcher.torchrun import place_below_torchrun


@dataclass(frozen=True)
class Configuration:
    """One attempt's configuration, the same for every process of the job.

    ``history`` is the directory of the event files. ``socket`` and ``secret`` are paths in the run's private directory;
    without them the agent records but takes no faults. ``digest_interval`` is the number of steps between digests, 0
    for none; ``digest_steps`` have one in any case. ``sample_seed`` chooses the sampled places of parameters; None for
    no samples. ``steps_per_update`` is the number of training-loop steps for each update of the optimizer. Ranks write
    their stacks into the directory ``stacks`` on the harness's signal, if it is given. ``extensions`` are modules whose
    ``install(agent)`` is called before the job starts. On one
    of several nodes ``node`` is the node's number, ``address`` its address on the job's network, and ``meeting`` the
    directory in which the ranks of all nodes find each other; else the ranks meet beside the socket.
    """

    run: str
    attempt: str
    history: str
    socket: str | None = None
    secret: str | None = None
    digest_interval: int = 1
    digest_steps: list[int] = field(default_factory=list)
    sample_seed: int | None = None
    steps_per_update: int = 1
    extensions: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    node: int | None = None
    address: str | None = None
    meeting: str | None = None
    stacks: str | None = None


def read_configuration(path: str) -> Configuration:
    """Read the file. Raises ValueError with the path when the file is not a configuration by the harness."""
    with open(path, encoding="utf-8") as file:
        values = json.load(file)
    try:
        return Configuration(**values)
    except TypeError as error:
        raise ValueError(f"{path}: not a configuration of this agent: {error}") from error


@dataclass(frozen=True)
class Place:
    """A process's place in the job. ``rank`` is None for the launcher and the scheduler."""

    role: str
    rank: int | None
    ranks: int | None


def place_of(environment: Mapping[str, str]) -> Place:
    """Find the place by msrun's environment (MindSpore 2.10): MS_ROLE, MS_NODE_ID, RANK_ID, MS_WORKER_NUM.

    Below torchrun it is found by torchrun's own variables, below another launcher by those that the launch names
    (CHAOS_RANKS).
    """
    role = environment.get("MS_ROLE", "")
    if not role and pairs_of(environment):
        place = place_by(environment)
        return Place("other", None, None) if place is None else Place("rank", *place)
    if not role and (place := place_below_torchrun(environment)) is not None:
        return Place("rank", *place)
    size = environment.get("MS_WORKER_NUM") or environment.get("RANK_SIZE")
    ranks = int(size) if size and size.isdigit() else None
    if role == "MS_SCHED":
        return Place("scheduler", None, ranks)
    number = environment.get("MS_NODE_ID") or environment.get("RANK_ID")
    if role == "MS_WORKER" and number and number.isdigit():
        return Place("rank", int(number), ranks)
    return Place("other", None, ranks)
