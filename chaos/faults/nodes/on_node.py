"""The common part of faults of whole nodes: one act for each node, and the platform's proof."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job

SURFACE = "node"
NEEDS_NODES = "needs a platform that has nodes, in a scenario"
RESTORE = "restore-node"
"""The undo step of a fault of a node. Arguments: node, its number, and what, the way of its repair."""


class ActsOnNode(Protocol):
    """A node that its platform can act on. All methods raise PlatformError.

    ``acts`` are the ids of the faults that have been made on it.
    """

    @property
    def acts(self) -> set[str]: ...

    def shown(self) -> dict[str, Any]:
        """Return the platform's record of the node.

        The keys are ``status``, ``exit_code``, ``connected``, ``started``, ``finished``, and ``restarted``: whether it
        was restarted since the launch.
        """

    def stop(self, grace: float) -> None:
        """Ask the node to end, and end it with everything on it after ``grace`` seconds."""

    def restart(self) -> None:
        """End everything on the node, and start it again."""

    def limit_memory(self, fault: str, spare: int) -> int:
        """Limit the node to ``spare`` bytes more than all of its ranks have now; return the limit in bytes."""

    def out_of_memory(self) -> dict[str, Any]:
        """Return the signs of the node's lack of memory.

        They are ``limit`` (bytes), and since the last fault limited it ``oom_events`` of the platform and ``oom_kills``
        of the kernel.
        """

    def limit_processors(self, cores: float) -> None:
        """Limit all ranks of the node together to the time of ``cores`` cores."""

    def waited(self) -> int:
        """Return the number of periods in which the kernel let the node wait since its processor time was limited."""

    def quota(self) -> int:
        """Return the node's microseconds of processor time in each tenth of a second; 0 where there is no limit."""

    def kill(self) -> None:
        """End the node, with everything on it, at once."""

    def pause(self) -> None:
        """Freeze everything on the node."""

    def disconnect(self) -> None:
        """Take the node off the job's network."""

    def take_directory(self, directory: Path) -> None:
        """Take everything at that path from the node."""

    def process_here(self, pid: int) -> int:
        """Return the PID on this host of a process of the node."""

    def names(self) -> dict[str, Any]:
        """Return the look-up of a name by a new program on the node.

        The keys are the ``name`` that was looked up, its addresses (``found``) or the ``error``, the addresses it had
        ``before`` the resolvers were cut off, an ``address`` and how it was ``reached``.
        """

    def cut_names(self, before: dict[str, Any]) -> None:
        """Keep the node from its resolvers. ``before`` is the result of the look-up until then."""

    def names_cut(self) -> list[str]:
        """Return the resolvers that the node is kept from, by the kernel."""


@runtime_checkable
class HoldsNodes(Protocol):
    """A job on nodes that can be acted on."""

    def node(self, number: int) -> ActsOnNode:
        """Return the node of that number."""


def node_of(job: Job, victim: Victim) -> ActsOnNode:
    """Return the node that a rank is on. Raises FaultMissed on a platform whose nodes cannot be acted on."""
    if not isinstance(job, HoldsNodes) or victim.identity.node is None:
        raise FaultMissed("the platform that the job lives on has no nodes that could be acted on")
    return job.node(victim.identity.node)


def node_ended(job: Job, victim: Victim) -> bool:
    """Return whether the node that a rank is on has ended, by the platform."""
    return bool(node_of(job, victim).shown()["status"] == "exited")


def restore_steps(fault: str, victims: list[Victim], what: str, note: str) -> list[UndoStep]:
    """Return one undo step for each node that the fault hits."""
    numbers = sorted({victim.identity.node for victim in victims if victim.identity.node is not None})
    return [
        UndoStep(f"{fault}-node-{number}", fault, RESTORE, {"node": number, "what": what}, f"{note} node {number}")
        for number in numbers
    ]


def make_once(
    victim: Victim, node: ActsOnNode, made: Callable[[dict[str, Any]], bool], act: Callable[[], None]
) -> None:
    """Act on a node unless the fault has acted on it for another of its ranks.

    Raises FaultMissed where the node was in that state before: then nothing would prove that this fault has caused it.
    """
    if victim.fault in node.acts:
        return
    shown = node.shown()
    if made(shown):
        raise FaultMissed(f"the node of rank {victim.rank} was so before this fault was made: {shown}")
    node.acts.add(victim.fault)
    act()
