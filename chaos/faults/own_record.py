"""A rank's own record of a fault: the evidence for faults that leave no trace in the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.jsonl import decode_shown, read_lines
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended


def own_event(record: Path, event: str, fault: str) -> dict[str, Any] | None:
    """Return the first event of this name and fault in the history of the agent inside the rank; None without one.

    Raises FileNotFoundError where the agent has no history.
    """
    name = f'"{event}"'.encode()
    for line in read_lines(record):
        if line.text is not None and not line.torn and name in line.text:
            fields = decode_shown(line.text)
            if fields is not None and fields.get("event") == event and fields.get("fault") == fault:
                return dict(fields)
    return None


def own_proof(
    job: Job, victim: Victim, event: str, deed: str, accept: Callable[[dict[str, Any]], bool] = lambda record: True
) -> dict[str, Any] | None:
    """Return the event by which a rank records that a fault was made in it; None as long as it may yet come.

    ``deed`` names the expected act, for a message. ``accept`` returns whether the event is of the act that was ordered.
    Raises FaultMissed when the rank has ended without it, FileNotFoundError where the agent has no history.
    """
    # Read first: an event that a rank writes while it ends is not missed between the two.
    ended = has_ended(job.state(victim.identity))
    record = own_event(victim.record, event, victim.fault)
    if record is not None and accept(record):
        return record
    if ended:
        raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that {deed}")
    return None
