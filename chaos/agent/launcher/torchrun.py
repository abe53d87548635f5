"""Ranks of torchrun, recognised by the variables that its agent gives each of them.

Seen with torchrun of PyTorch 2.13: each rank has RANK, LOCAL_RANK, WORLD_SIZE, GROUP_RANK (the number of its node),
MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID (``--rdzv-id``, "none" by default), and leads a session of its own.
TORCHELASTIC_RESTART_COUNT is no generation: each node counts for itself, and a node whose ranks were started again for
another node's sake has the same number twice. The agent and the remote helper use this: standard library only,
Python 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping

RUN_ID = "TORCHELASTIC_RUN_ID"
MASTER = ("MASTER_ADDR", "MASTER_PORT")

VARIABLES = frozenset(
    {
        *MASTER,
        RUN_ID,
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "TORCHELASTIC_ERROR_FILE",
        "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_SIGNALS_TO_HANDLE",
        "TORCHELASTIC_TIMER_FILE",
        "TORCHELASTIC_USE_AGENT_STORE",
    }
)
"""Variables that torchrun sets for a rank. Settings of its user, such as TORCHELASTIC_ENABLE_FILE_TIMER, are none."""


def place_below_torchrun(environment: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return the number of the rank and of all ranks; the second is None where WORLD_SIZE is no number.

    None for any other process. RANK alone numbers no rank: in a pod it is the number of the node (Ascend Operator).
    """
    rank = environment.get("RANK", "")
    if RUN_ID not in environment or not _whole(environment.get("LOCAL_RANK", "")) or not _whole(rank):
        return None
    size = environment.get("WORLD_SIZE", "")
    return int(rank), int(size) if _whole(size) else None


def _whole(value: str) -> bool:
    return value.isascii() and value.isdecimal()
