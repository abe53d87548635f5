"""The environment of a launcher: the environment of its node, overridden by the run's variables."""

from __future__ import annotations

import os
from collections.abc import Mapping

from chaos.agent.launcher.rank_variables import VARIABLE, without_ranks
from chaos.agent.launcher.torchrun import VARIABLES as OF_TORCHRUN

_SWITCHES = frozenset(
    {
        "MS_ENABLE_TFT",
        "MINDIO_FOR_MINDSPORE",
        "MINDX_TASK_ID",
        "ELASTIC_PROCESS_RECOVER_ENABLE",
        "ENABLE_RESTART_FAULT_PROCESS",
        "HIGH_AVAILABILITY",
        "PROCESS_RECOVER",
        "TASKD_PROCESS_ENABLE",
    }
)
_SWITCH_PREFIX = "MS_TFT_"
_PLACES = frozenset(
    {
        "MS_ROLE",
        "MS_NODE_ID",
        "MS_NODE_RANK",
        "MS_SCHED_HOST",
        "MS_SCHED_PORT",
        "MS_SERVER_NUM",
        "MS_WORKER_NUM",
        "MS_LOCAL_WORKER",
    }
)
"""Variables by which msrun (MindSpore 2.10) says which part of a job a process is."""

KEY_VARIABLE = "CHAOS_KEY"
KEY_FILE_VARIABLE = "CHAOS_KEY_FILE"
"""The user's key (chaos.store.key), or its file: no job needs either."""
_KEYS = frozenset({KEY_VARIABLE, KEY_FILE_VARIABLE})


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables of mechanisms, controllers and rank numbers.

    The plan decides about mechanisms and the controller (``job.protection``, ``job.controller``), and a job kind or
    ``job.environment`` hands them to the job. Variables that a shell or a container has set for another job would
    switch on mechanisms that the plan leaves off. A launcher's own environment must not claim a role either: an
    operator gives each of its pods one (Ascend Operator: MS_ROLE; RANK, MASTER_ADDR and WORLD_SIZE with PyTorch).
    Source of the names: MindSpore, power-off checkpoint; MINDX_TASK_ID keeps rank 0 from starting the controller; the
    Ascend Operator sets those without MS_ or MIND for PyTorch (MindCluster, August 2026). The user's key, by which heal
    recognises the user's own runs, is for no job either.
    """
    return {name: value for name, value in environment.items() if not _kept_back(name)}


def launcher_environment(
    node_environment: Mapping[str, str], overrides: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of a launcher on a node: ``overrides`` take precedence over ``node_environment``.

    ``before`` are lists of directories (``PATH``, ``PYTHONPATH``) that precede the node's own lists.
    """
    theirs = without_ranks(handed_on(node_environment), overrides.get(VARIABLE, ""))
    environment = {**theirs, **overrides}
    for name, directories in before.items():
        after = environment.get(name) or (os.defpath if name == "PATH" else "")
        # An empty entry would mean the current directory.
        environment[name] = os.pathsep.join(filter(None, [directories, after]))
    return environment


def _kept_back(name: str) -> bool:
    return name in _SWITCHES | _PLACES | OF_TORCHRUN | _KEYS or name.startswith(_SWITCH_PREFIX)
