"""What the faults of whole nodes have in common: the node is asked for once, and the platform shows that it is hit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job

MEANS = "node"
NEEDS_NODES = "needs a platform that has nodes, in a scenario"
RESTORE = "restore-node"
"""The undo step of a fault of a node. Arguments: node, its number, and what: how it is put back."""


class ActsOnNode(Protocol):
    """A node that its platform can do something to. All raise PlatformError.

    ``acts`` are the ids of the faults that have been made on it.
    """

    @property
    def acts(self) -> set[str]: ...

    def shown(self) -> dict[str, Any]:
        """What the platform says of it: ``status``, ``exit_code``, ``connected``, ``started``, ``finished``, and
        whether it was ``restarted`` since the launch."""

    def stop(self, grace: float) -> None:
        """Ask it to end, and end it with everything on it after so many seconds."""

    def restart(self) -> None:
        """End everything on it, and start it again."""

    def limit_memory(self, fault: str, spare: int) -> int:
        """Let it take so many bytes more than it has now, all of its ranks together; the limit in bytes."""

    def out_of_memory(self) -> dict[str, Any]:
        """What shows its want of memory: ``limit`` (bytes), and since the last fault limited it ``oom_events`` of the
        platform and ``oom_kills`` of the kernel."""

    def limit_processors(self, cores: float) -> None:
        """Let it have so many cores' time, all of its ranks together."""

    def waited(self) -> int:
        """In how many periods the kernel let it wait since its processor time was limited."""

    def quota(self) -> int:
        """Microseconds of processor time that it gets in each tenth of a second; 0 where there is no limit."""

    def kill(self) -> None:
        """End it, with everything on it, at once."""

    def pause(self) -> None:
        """Freeze everything on it."""

    def disconnect(self) -> None:
        """Take it off the job's network."""

    def take_directory(self, directory: Path) -> None:
        """Let it have nothing at that path any more."""

    def process_here(self, pid: int) -> int:
        """Return the PID on this host of a process of it."""

    def names(self) -> dict[str, Any]:
        """What a new program on it finds: the ``name`` that was looked up, its addresses (``found``) or the ``error``,
        those it had ``before`` the resolvers were cut off, an ``address`` and how it was ``reached``."""

    def cut_names(self, before: dict[str, Any]) -> None:
        """Keep it from its resolvers. ``before`` is what was found until then."""

    def names_cut(self) -> list[str]:
        """Return the resolvers that it is kept from, by the kernel."""


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
    """Act on a node unless that has been done for another of its ranks.

    Raises FaultMissed where the node was so before: then nobody could tell that this fault has made it so.
    """
    if victim.fault in node.acts:
        return
    shown = node.shown()
    if made(shown):
        raise FaultMissed(f"the node of rank {victim.rank} was so before this fault was made: {shown}")
    node.acts.add(victim.fault)
    act()
