"""What a rank has recorded of a fault itself: the evidence for faults that leave no trace in the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.history.jsonl import decode, read_lines


def own_event(record: Path, event: str, fault: str) -> dict[str, Any] | None:
    """The first event of this name and fault in the history file of the agent inside the rank. None if there is none.

    Raises FileNotFoundError where the agent has no history.
    """
    name = f'"{event}"'.encode()
    for line in read_lines(record):
        if line.text is not None and not line.torn and name in line.text:
            found = decode(line.text)
            if found.get("event") == event and found.get("fault") == fault:
                return dict(found)
    return None
