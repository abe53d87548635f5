"""The TCP port of a fault, by the word or number in its parameter ``port``."""

from __future__ import annotations

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.plan_ports import COMMUNICATOR
from chaos.history.jsonl import decode_shown, read_lines

_JOINED = "communicator.joined"


def port_of(victim: Victim) -> int:
    """Return the port: by its number, by its purpose in the launch, or by the rank's own record.

    Raises FaultMissed where the rank has recorded none.
    """
    named = victim.parameters["port"]
    if named != COMMUNICATOR:
        return int(named) if isinstance(named, int) else victim.ports[named]
    ports = joined_at(victim)
    if not ports:
        raise FaultMissed(f"rank {victim.rank} has recorded no port that its communicator listens on")
    return ports[-1]


def joined_at(victim: Victim) -> list[int]:
    """Return the ports of the communicators that the rank's process has joined, the present one last.

    Raises UnreadableFile where the agent has no history.
    """
    name, ports = f'"{_JOINED}"'.encode(), []
    for line in read_lines(victim.record):
        if line.text is not None and not line.torn and name in line.text:
            event = decode_shown(line.text)
            if event is not None and event.get("event") == _JOINED and isinstance(event.get("port"), int):
                ports.append(int(event["port"]))
    return ports
