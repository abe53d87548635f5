"""Directories of runs, for searches of scenarios: a scenario in such a directory is a copy of the one that was run.

Light: reads no more than run.json, and imports neither pydantic nor YAML.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

_RECORD = "run.json"
_LEDGER = "undo.jsonl"
_LONGEST = 1 << 20


def is_run(directory: str | Path) -> bool:
    """Return whether a directory is that of a run, whatever its name and its author. Never raises."""
    path = Path(directory, _RECORD)
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            record = json.loads(stream.read(_LONGEST))
    except PermissionError:
        return os.path.lexists(Path(directory, _LEDGER))  # of another user, who may read it alone
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("run"), str) and "created" in record
