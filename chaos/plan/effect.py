"""The effect of a fault kind on a rank's process, node and card: checks ask it instead of the kind's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from chaos.base.registry import registry

DEFAULT_CODE = 1
"""The exit code of a rank that ends itself, where the scenario says none."""


@dataclass(frozen=True)
class DeviceError:
    """The error that a device must report: its code, and the meaning of the code."""

    code: str
    meaning: str


@dataclass(frozen=True)
class Effect:
    """The effect of a fault kind. By default none: the processes of the ranks live on, and they lose nothing.

    Args:
        signal: the number of the signal by which the process must end (Linux).
        code: the parameter with the exit code that the process must end with.
        by_itself: the rank ends itself, and records its intention first.
        fails: the process ends in a way of which only the failure is known.
        shows: the number of the signal that evidence must show where the process need not end by it.
        silenced: the rank is lost to the job while its process lives; where the function is that says from evidence
            whether that still holds (``module:object``).
        stopped: the process is stopped, so that SIGKILL alone can end it.
        cut_off: the process runs on without a network.
        grace: seconds that a node goes on after the act, where the scenario says nothing.
        takes_pod: the pod ends, and by SIGKILL all that runs in it.
        reboots: the kernel that could say how the process has ended ends with it.
        on_card: it disturbs a card, which the cluster may quarantine for it.
        starves: ranks wait for processors on purpose.
        parts_nodes: the network between the nodes of its ranks and all others is taken.
        blocks_port: a TCP port of the nodes of its ranks answers no more.
        holds_packets: what is sent to the nodes of its ranks comes later.
        resets_connections: the kernels of its ranks' nodes close connections of theirs.
        breaks_link: a link of a card is down, which the timeout of a collective or the watchdog has to find out.
        names_finder: the rank's own device layer records the broken link, and the rank's log names what found it.
        error: the error that its ranks' device must report; None where the class of the error alone decides.
    """

    signal: int | None = None
    code: str | None = None
    by_itself: bool = False
    fails: bool = False
    shows: int | None = None
    silenced: str | None = None
    stopped: bool = False
    cut_off: bool = False
    grace: float | None = None
    takes_pod: bool = False
    reboots: bool = False
    on_card: bool = False
    starves: bool = False
    parts_nodes: bool = False
    blocks_port: bool = False
    holds_packets: bool = False
    resets_connections: bool = False
    breaks_link: bool = False
    names_finder: bool = False
    error: DeviceError | None = None


NONE = Effect()


def effect_of(kind: str) -> Effect:
    """Return the effect of a kind; no effect for a kind of no family here, which its own proof alone can judge."""
    kinds = registry("kinds")
    return cast(Effect, kinds.load(kind).effect) if kind in kinds.points else NONE
