"""What a fault asks of the network between the nodes of a run, whoever changes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chaos.machine.linux.net.connections import Connection
from chaos.machine.linux.net.echo import Echoes
from chaos.machine.linux.net.ports import Ports
from chaos.platforms.network.impairment import Impairment

Direction = tuple[int, int]
"""The direction of packets: from a node to another, by their numbers."""

DISCARD, ECHO = 9, 7
"""Ports that nobody of a job listens on (RFC 863, RFC 862): one of them is asked whether other ports answer."""
SILENCE_SECONDS, ANSWER_SECONDS = 0.05, 1.0
"""How long a blocked port may take to answer, and one that is not: between nodes it is well below a millisecond."""

ECHOES, ECHO_SECONDS = 2, 0.05
"""Requests to each node, and how long their answers may take: between nodes it is well below a millisecond."""


@dataclass(frozen=True)
class Parted:
    """What the kernels of nodes show of a cut.

    ``connections`` go between the nodes here and those there. ``lost`` are the directions that the fault's own rules
    cut and in which the kernel lets packets vanish. ``echoes`` is what came of requests from here to there.
    """

    connections: int
    lost: list[Direction]
    echoes: Echoes


@dataclass(frozen=True)
class Blocked:
    """What the kernels of nodes show of a port that is cut off.

    ``connections`` go to the port. ``lost`` are the directions in which the kernel lets packets of the port vanish by
    the fault's own rules, ``passing`` those in which other packets pass. ``attempts`` has the number of nodes that
    asked the port for an answer and of those that got one, ``elsewhere`` the same for another port.
    """

    connections: int
    lost: list[Direction]
    passing: list[Direction]
    attempts: tuple[int, int]
    elsewhere: tuple[int, int]


def another_port(port: int) -> int:
    """Return one that nobody of a job listens on, and is not this one."""
    return ECHO if port == DISCARD else DISCARD


class NodeNetwork(Protocol):
    """The network between the nodes of one run: a router of the run's own, or the hosts themselves.

    Each fault has rules of its own, by which they are found and removed. All methods raise PlatformError, and OSError.
    """

    def address(self, node: int) -> str:
        """Return the number of a node on the job's network."""

    def cut(self, fault: str, directions: Iterable[Direction]) -> None:
        """Let what is sent on these directions vanish. What a fault cuts already stays so."""

    def cuts(self, fault: str) -> set[Direction]:
        """Return the ways that a fault's own rules cut."""

    def parted(self, fault: str, directions: Sequence[Direction], here: Sequence[int], there: Sequence[int]) -> Parted:
        """What shows of a cut of these directions between some nodes and others. It takes no longer than it must."""

    def block(self, fault: str, meant: Sequence[tuple[Direction, Ports]]) -> None:
        """Let TCP between these ports vanish on these directions, and all else pass."""

    def lost(self, fault: str, meant: Sequence[tuple[Direction, Ports]]) -> list[Direction]:
        """The directions in which it vanishes by the fault's own rules. One look: each makes a short fault longer."""

    def blocked(self, fault: str, port: int, meant: Sequence[tuple[Direction, Ports]], node: int) -> Blocked:
        """What shows of it at the port of that node."""

    def established(self, node: int, *, of_run: bool) -> list[Connection]:
        """The TCP connections of a node with others of the run; with ``of_run`` those that its processes have."""

    def reset(self, node: int, connection: Connection) -> bool:
        """Let the kernel of a node reset one, which both ends are told. Whether it has: False where there is none."""

    def impair(self, fault: str, node: int, what: Impairment) -> None:
        """Let what is sent to a node wait or be lost."""

    def impaired(self, fault: str, node: int) -> dict[str, Any] | None:
        """``by`` what a fault makes the way to a node worse, and how many packets ``passed``; None where not."""

    def slow(self, fault: str, node: int, kbit: int) -> None:
        """Let no more than so many kilobits a second go to a node."""

    def slowed(self, fault: str, node: int) -> dict[str, int] | None:
        """The rate that the kernel holds a fault's node to (``kbit``), how many ``bytes`` it has sent by it, and how
        often it would have been more (``overlimits``); None without one."""

    def echo(self, node: int, others: Sequence[int], *, count: int, interval: float = 0.0, wait: float) -> Echoes:
        """What comes of echo requests from a node to each of the others (:func:`chaos.machine.linux.net.echo.ask`)."""
