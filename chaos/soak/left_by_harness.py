"""Processes that a killed harness has started and that have to end with it, and the networks that they hold.

They are the remote helpers of nodes, the holder of a run's network, relays, and a fault's processes beside the job:
they stay in the harness's session and carry nothing of the run. Each ends when its input does, or its switch is lost.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.process import identify
from chaos.machine.linux.procfs import PROC, all_pids, command_line, read_stat
from chaos.platforms.network.leftovers import shown_in

_END_SECONDS = 10.0
"""For processes that end with their harness: a starved machine may not have let them run since."""


def left_by_harness(harnesses: Sequence[int], clock: Clock = SYSTEM_CLOCK) -> list[int]:
    """Return the living processes of these sessions, each by the PID of the killed harness that led it.

    They are given some seconds to end.
    """
    living: list[int] = []

    def all_ended() -> bool:
        living[:] = _in_sessions(harnesses)
        return not living

    with contextlib.suppress(DeadlineExpired):
        wait_for("the end of what ends with a harness", all_ended, seconds=_END_SECONDS, clock=clock)
    return living


def networks_of(pids: Iterable[int]) -> list[str]:
    """Return the network namespaces that these processes are in and this one is not, with their contents, in words."""
    own_network = _network_of("self")
    held: dict[str, int] = {}
    for pid in pids:
        network = _network_of(pid)
        if network is not None and network != own_network:
            held.setdefault(network, pid)
    texts = {network: f"network {network} is held by process {pid}: {_shown(pid)}" for network, pid in held.items()}
    return [text for network, text in texts.items() if _network_of(held[network]) == network]  # else it has just ended


def _in_sessions(harnesses: Sequence[int]) -> list[int]:
    # A leader that lives is another's: the number was used again. Session 0 is led from outside this PID namespace.
    led = {pid for pid in harnesses if pid > 0 and ((leader := read_stat(pid)) is None or leader.ended)}
    stats = (read_stat(pid) for pid in all_pids())
    return sorted(
        stat.pid
        for stat in stats
        if stat is not None and stat.session in led and not stat.ended and stat.pid != os.getpid()
    )


def described(pid: int) -> str:
    """Return a process in words."""
    return f"process {pid}: {' '.join(command_line(pid))}"


def _network_of(pid: int | str) -> str | None:
    try:
        return str((PROC / str(pid) / "ns" / "net").readlink())
    except OSError:
        return None


def _shown(pid: int) -> str:
    try:
        return ", ".join(shown_in(Namespace(identify(pid)))) or "nothing is in it"
    except (PlatformError, LookupError, OSError, ValueError) as error:
        return f"what is in it cannot be said: {error}"
