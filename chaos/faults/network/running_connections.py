"""``connection-reset`` in a job that runs already: its choice of connections, and the differences from a run.

The fault hits connections with an end in the rank itself, wherever the other end is: nothing is in between, and the
kernel of this host resets them (sock_diag(7), as ``ss -K`` does). They are chosen once and identified by the kernel's
cookie, which no other connection ever has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from chaos.faults.behaviours import Aimed
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.plan_ports import CONTROLLER, RESET_PORT, SCHEDULER
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.net.connections import Connection, established, reset
from chaos.machine.linux.net.of_process import connections_of, network_of
from chaos.machine.linux.procfs import environment
from chaos.machine.running.running import JobProcess
from chaos.plan.job_effect import JobEffect

_MASTER = "master"
_VARIABLES = {SCHEDULER: "MS_SCHED_PORT", CONTROLLER: "MS_TFT_PORT", _MASTER: "MASTER_PORT"}
"""Variables of a rank's environment with the port that a word means."""

_SHOWN = 10


@dataclass(frozen=True)
class RunningConnections(Aimed):
    """The kind in a job that runs already. ``aims`` are the chosen connections by rank."""

    name: str
    effect: JobEffect
    needs: tuple[str, ...]
    aims: Mapping[int, Sequence[Connection]] = field(default_factory=dict)
    confirmed: dict[int, list[bool]] = field(default_factory=dict)

    from_outside = True
    evidence_source = "the kernel (sock_diag)"
    surface = "network"
    parameters = MappingProxyType({"port": replace(RESET_PORT, words=tuple(_VARIABLES))})

    def aim_at(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> RunningConnections:
        """Return the kind with the connections of each rank. Raises FaultMissed where one has none of that port."""
        port = parameters["port"]
        return replace(self, aims={process.rank: _aim(process, port) for process in ranks if process.rank is not None})

    def aim_records(self) -> list[dict[str, Any]]:
        """Return the connections that would be hit."""
        return [
            {"rank": rank, "connection": str(connection)}
            for rank, connections in sorted(self.aims.items())
            for connection in connections
        ]

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a connection that was reset is gone, and both ends may connect again."""
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Ask the kernel to reset each connection."""
        del job
        try:
            network = network_of(victim.identity)
            self.confirmed[victim.rank] = [reset(network, connection) for connection in self.aims[victim.rank]]
        except PlatformError as error:
            raise FaultMissed(str(error)) from error
        if not any(self.confirmed[victim.rank]):
            raise FaultMissed(f"rank {victim.rank}: the connections were closed before they could be reset")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the connections, the kernel's answer to each reset, and the count that is left, which is 0.

        None as long as one is left. Raises FaultMissed where nobody can look.
        """
        del job
        try:
            there = {connection.cookie for connection in established(network_of(victim.identity))}
        except (PlatformError, OSError) as error:
            raise FaultMissed(f"whether the connections are gone cannot be seen: {error}") from error
        resets = [
            {**asdict(connection), "confirmed": confirmed}
            for connection, confirmed in zip(self.aims[victim.rank], self.confirmed[victim.rank], strict=True)
        ]
        left = sum(connection.cookie in there for connection in self.aims[victim.rank])
        return None if left else {"signal": None, "port": victim.parameters["port"], "reset": resets, "left": 0}


def _aim(process: JobProcess, port: int | str) -> list[Connection]:
    number = port if isinstance(port, int) else _port_of_word(process, port)
    try:
        rank_connections = connections_of(process.identity)
    except (PlatformError, OSError) as error:
        raise FaultMissed(
            f"the connections of rank {process.rank} cannot be seen: {error}: call chaos as root"
        ) from error
    connections = [
        connection for connection in rank_connections if number in (connection.source_port, connection.target_port)
    ]
    if not connections:
        more = f" and {len(rank_connections) - _SHOWN} more" if len(rank_connections) > _SHOWN else ""
        listed = ", ".join(map(str, rank_connections[:_SHOWN])) + more or "none at all"
        raise FaultMissed(
            f"rank {process.rank} (PID {process.pid}) has no established TCP connection (IPv4) of port {number}; "
            f"it has {listed}"
        )
    return connections


def _port_of_word(process: JobProcess, word: str) -> int:
    variable = _VARIABLES[word]
    value = (environment(process.pid) or {}).get(variable, "")
    if not value.isdecimal():
        raise FaultMissed(
            f"the environment of rank {process.rank} (PID {process.pid}) has no {variable}, so the port of the {word} "
            "is not known: give its number, --set port=…"
        )
    return int(value)
