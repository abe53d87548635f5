"""How and when a run was made: from its run.json, and from the first and the last record of its harness."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.report.result import Making

T = TypeVar("T")

_HARNESS = "harness"


def read_making(history: History, facts: Mapping[str, Any]) -> Making:
    """Return how the run was made. Values of run.json (``facts``) in another form than this version's are left out."""
    command, cores, hosts = (_of(list, facts.get(key)) for key in ("command", "cores", "hosts"))
    start = history.first("run.start")
    return Making(
        started=None if start is None else _utc(start),
        seconds=None if start is None else _seconds(start, history),
        command=tuple(command) if command is not None and all(isinstance(word, str) for word in command) else None,
        variables=_of(dict, facts.get("variables")),
        cores=tuple(cores) if cores is not None and all(type(core) is int for core in cores) else None,
        machine=_of(dict, facts.get("machine")),
        code=_of(str, facts.get("code")),
        hosts=tuple(hosts) if hosts is not None and all(isinstance(host, dict) for host in hosts) else None,
        inputs=_of(dict, facts.get("inputs")),
    )


def _seconds(start: Event, history: History) -> float:
    """Return the seconds up to the harness's last record: where it was killed there is no ``run.end``."""
    last = max(event.mono for event in history.events if event.writer == _HARNESS)
    return (last - start.mono) / 1e9


def _utc(event: Event) -> str | None:
    try:
        return datetime.fromtimestamp(event.wall // 1_000_000_000, timezone.utc).isoformat()
    except (OverflowError, OSError, ValueError):  # the machine's clock was at an impossible time
        return None


def _of(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None
