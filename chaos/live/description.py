"""The description of a run as a whole by its directory: run.json, plan.json, result.json."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.plan.io import PlanFormatError, loads
from chaos.plan.model import Plan
from chaos.store.directory import RUN_FILE

_RESULT = "result.json"
_LONGEST_RESULT = 64 << 20
_MOST_RANKS = 1 << 17
"""Ranks of a plan that is followed. A line of a plan can name any number, and each rank takes memory."""


class Described:
    """The files that describe a run, read again when they have changed."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._read: dict[str, tuple[tuple[int, int, int], Any]] = {}

    @property
    def run(self) -> dict[str, Any]:
        """The content of run.json; empty as long as it cannot be read."""
        return self._of(RUN_FILE, _mapping) or {}

    @property
    def plan(self) -> Plan | None:
        """The plan; None as long as it is not written."""
        plan: Plan | None = self._of("plan.json", _plan)
        return plan

    @property
    def verdict(self) -> str | None:
        """The verdict of a run that has been judged."""
        result = self._of(_RESULT, _mapping)
        verdict = (result or {}).get("verdict")
        return verdict if verdict in ("pass", "fail", "unknown") else None

    def _of(self, name: str, read: Any) -> Any:
        path = self._run_dir / name
        with contextlib.suppress(OSError, ValueError):
            status = path.lstat()
            key = (status.st_ino, status.st_size, status.st_mtime_ns)
            if name not in self._read or self._read[name][0] != key:
                self._read[name] = (key, read(read_plain(path, _LONGEST_RESULT)))
            return self._read[name][1]
        return self._read[name][1] if name in self._read else None


def _mapping(text: bytes) -> dict[str, Any]:
    from chaos.base.strict_json import parse

    value = parse(text)
    return value if isinstance(value, dict) else {}


def _plan(text: bytes) -> Plan | None:
    try:
        plan = loads(text)
    except PlanFormatError:
        return None
    return plan if 0 < plan.layout.ranks <= _MOST_RANKS else None
