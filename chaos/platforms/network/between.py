"""What a fault asks of the network between the nodes of a run, whoever changes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from chaos.platforms.network.echo import Echoes
from chaos.platforms.network.impairment import Impairment

Way = tuple[int, int]
"""From a node to another, by their numbers."""


ECHOES, ECHO_SECONDS = 2, 0.05
"""Requests to each node, and how long their answers may take: between nodes it is well below a millisecond."""


@dataclass(frozen=True)
class Parted:
    """What the kernels of nodes show of a cut.

    ``connections`` go between the nodes here and those there. ``lost`` are the ways that the fault's own rules cut and
    on which the kernel lets packets vanish. ``echoes`` is what came of requests from here to there.
    """

    connections: int
    lost: list[Way]
    echoes: Echoes


@runtime_checkable
class Between(Protocol):
    """The network between the nodes of one run: a router of the run's own, or the hosts themselves.

    Each fault has rules of its own, by which they are found and removed. All methods raise PlatformError, and OSError.
    """

    def cut(self, fault: str, ways: Iterable[Way]) -> None:
        """Let what is sent on these ways vanish. What a fault cuts already stays so."""

    def cuts(self, fault: str) -> set[Way]:
        """The ways that a fault's own rules cut."""

    def parted(self, fault: str, ways: Sequence[Way], here: Sequence[int], there: Sequence[int]) -> Parted:
        """What shows of a cut of these ways between some nodes and the others. It takes no longer than it must."""

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
        """What comes of echo requests from a node to each of the others (:func:`chaos.platforms.network.echo.ask`)."""
