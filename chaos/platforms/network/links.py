"""The interface of the network between the nodes of a run to faults, whatever carries it out."""

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
"""Ports that no process of a job listens on (RFC 863, RFC 862): one of them is asked whether other ports answer."""
SILENCE_SECONDS, ANSWER_SECONDS = 0.05, 1.0
"""How long a blocked port may take to answer, and an open port: between nodes it takes well below a millisecond."""

ECHOES, ECHO_SECONDS = 2, 0.05
"""Requests to each node, and the time limit of their answers: between nodes it takes well below a millisecond."""


@dataclass(frozen=True)
class CutEffects:
    """The nodes' kernels' view of a cut.

    ``connections`` go between the nodes here and the nodes there. ``lost`` are the directions that the fault's own
    rules cut and in which the kernel drops packets. ``echoes`` are the results of requests from here to there.
    """

    connections: int
    lost: list[Direction]
    echoes: Echoes


@dataclass(frozen=True)
class Blocked:
    """The nodes' kernels' view of a blocked port.

    ``connections`` go to the port. ``lost`` are the directions in which the kernel drops packets of the port by the
    fault's own rules, ``passing`` the directions in which other packets pass. ``attempts`` has the number of nodes that
    asked the port for an answer and the number of nodes that got one, ``elsewhere`` the same for another port.
    """

    connections: int
    lost: list[Direction]
    passing: list[Direction]
    attempts: tuple[int, int]
    elsewhere: tuple[int, int]


def another_port(port: int) -> int:
    """Return a port that no process of a job listens on, and that differs from this port."""
    return ECHO if port == DISCARD else DISCARD


class NodeNetwork(Protocol):
    """The network between the nodes of one run: a router of the run's own, or the hosts themselves.

    Each fault has rules of its own, which are found and removed by the fault's id. All methods raise PlatformError, and
    OSError.
    """

    def address(self, node: int) -> str:
        """Return the address of a node on the job's network, in numbers."""

    def cut(self, fault: str, directions: Iterable[Direction]) -> None:
        """Drop all packets in these directions. Directions that the fault cuts already stay cut."""

    def cuts(self, fault: str) -> set[Direction]:
        """Return the directions that a fault's own rules cut."""

    def cut_effects(
        self, fault: str, directions: Sequence[Direction], here: Sequence[int], there: Sequence[int]
    ) -> CutEffects:
        """Return the visible effects of a cut of these directions between some nodes and others, without delay."""

    def block(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> None:
        """Drop TCP packets between these ports in these directions, and pass all others."""

    def lost(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> list[Direction]:
        """Return the directions in which the fault's own rules drop packets.

        It looks once: each look makes a short fault longer.
        """

    def blocked(self, fault: str, port: int, flows: Sequence[tuple[Direction, Ports]], node: int) -> Blocked:
        """Return the visible effects of the block at the port of that node."""

    def established(self, node: int, *, of_run: bool) -> list[Connection]:
        """Return the TCP connections of a node with others of the run; with ``of_run`` those of the run's processes."""

    def reset(self, node: int, connection: Connection) -> bool:
        """Let the kernel of a node reset a connection, and so notify both ends. Returns False where there is none."""

    def impair(self, fault: str, node: int, what: Impairment) -> None:
        """Delay or lose packets to a node."""

    def impaired(self, fault: str, node: int) -> dict[str, Any] | None:
        """Return the fault's impairment of a node's link: ``by`` what, and the packets ``passed``; None without one."""

    def slow(self, fault: str, node: int, kbit: int) -> None:
        """Limit the packets to a node to so many kilobits per second."""

    def slowed(self, fault: str, node: int) -> dict[str, int] | None:
        """Return the rate of the kernel's limit for a fault's node, and its counters; None without a limit.

        ``kbit`` is the rate, ``bytes`` the bytes sent under it, ``overlimits`` how often it would have been more.
        """

    def echo(self, node: int, others: Sequence[int], *, count: int, interval: float = 0.0, wait: float) -> Echoes:
        """Return the results of echo requests from a node to the others (:func:`chaos.machine.linux.net.echo.ask`)."""
