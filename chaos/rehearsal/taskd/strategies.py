"""The recovery strategy that the cluster's manager chooses: MindCluster's rules (clusterd, the recover controller).

Of the strategies that the job allows, it is the first in order of priority that fits the fault, that the SDK has
offered and that has not failed yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

PRIORITY = ("retry", "recover-in-place", "recover", "elastic-training", "dump", "exit")

PROCESS_FAULT = 1
"""Fault type that the SDK's controller reports for a process that has ended; 0 is a memory error, 2 HCCL."""

# The SDK's controller's answers (report_result).
OK, RETRY_FAILED, ONLY_DUMP, ONLY_EXIT = 0, 405, 406, 499


@dataclass(frozen=True)
class Situation:
    """The known facts when a strategy has to be chosen.

    ``nodes_hit`` counts the nodes that the faulty ranks are on. ``tried`` are strategies that have failed.
    """

    configured: Collection[str]
    offered: Collection[str]
    process_fault: bool
    nodes_hit: int
    tried: Collection[str] = ()


def choose(now: Situation) -> str:
    """Return the strategy to follow; ``exit`` where no other is left."""
    return next((strategy for strategy in PRIORITY if strategy in now.configured and _fits(strategy, now)), "exit")


def offered_after(code: int, offered: Collection[str]) -> tuple[str, ...]:
    """Return the strategies that are still offered after the controller has reported a failure.

    After ``RETRY_FAILED`` it offers anew.
    """
    withdrawn = {"retry", "recover"} if code == ONLY_DUMP else {"retry", "recover", "dump"}
    return tuple(strategy for strategy in offered if strategy not in withdrawn)


def _fits(strategy: str, now: Situation) -> bool:
    if strategy in now.tried:
        return False
    if strategy == "retry":
        return not now.process_fault and "retry" in now.offered
    if strategy == "recover-in-place":
        # To the SDK both kinds of restart are "recover". In place, one node's processes can be started again.
        return "recover" in now.offered and now.nodes_hit <= 1
    if strategy == "elastic-training":
        return False
    return strategy in now.offered
