"""The error that ended a rank which no fault hit: of a collective that lost a rank, of its own program, or open.

The readers of PyTorch's lines know the texts of gloo, NCCL and HCCL. PyTorch's own classes of such errors are taken by
their names. An error of the framework with another text may come from the fault or from the script.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timezone
from pathlib import Path
from typing import Literal

from chaos.evidence.facts import TRAIN, error_text
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.observe.error_classes import OF_ANYBODY, OF_FAULTS
from chaos.observe.logs.reader import read_log
from chaos.observe.logs.torch.rank_log import TorchRankLogReader
from chaos.observe.logs.traceback_end import error_at_end

Cause = Literal["collective", "program", "open"]

INTERRUPT = "KeyboardInterrupt"
"""What a handler of SIGTERM may raise, as Python's own of SIGINT does."""

_CLASSES = frozenset({"DistBackendError", "DistNetworkError", "DistStoreError"})
"""Errors of torch.distributed's backends and stores (PyTorch 2.1 to 2.13)."""

_KINDS = ("collective.", "group.connect_failed", "store.timeout", "store.unreachable", "watchdog.")
_OF_DEVICES = frozenset(
    {"FORCE STOP", "HCCL OP RETRY FAILED", "SUSPECT REMOTE ERROR", "HCCS LINK ERROR", "UB LINK ERROR"}
)
"""Errors of torch_npu that a rank has because of another, or because it is stopped."""

_ABORTS = frozenset({"watchdog.timeout", "watchdog.ended", "watchdog.down", "collective.failed", "collective.timeout"})
"""Lines of a process that the watchdog of its collectives ends, without an exception of Python."""


@dataclass(frozen=True)
class SurvivorError:
    """An error: its text, what it is of, Python's class of it, and whether a log alone shows it."""

    text: str
    cause: Cause
    base: str = ""
    by_log: bool = False


def recorded_error(case: Case, rank: int, end: Event) -> SurvivorError | None:
    """Return the error that nothing caught in a process, as its agent has recorded it; None without a record."""
    event = case.history.last("error.uncaught", attempt=TRAIN, rank=rank, pid=end.pid)
    if event is None:
        return None
    texts = [str(event.data[name]) for name in ("error", "first") if name in event.data]
    base = str(event.data.get("base"))
    cause: Cause = "open" if base in OF_FAULTS | OF_ANYBODY else "program"
    return SurvivorError(error_text(event), "collective" if any(map(_is_of_collective, texts)) else cause, base)


def logged_error(case: Case, rank: int, end: Event) -> SurvivorError | None:
    """Return the error of a process by its own log, which no agent has recorded; None without one there."""
    path = _log_of(case, rank, end)
    if path is None:
        return None
    raised = error_at_end(path)
    if raised is not None:
        of_collective = any(_is_of_collective(str(error)) for error in (raised, raised.first) if error is not None)
        return SurvivorError(str(raised), "collective" if of_collective else "open", raised.name, by_log=True)
    for event in read_log(path, [TorchRankLogReader(timezone.utc)], name=case.artifacts.relative(path)):
        if event.kind in _ABORTS:
            return SurvivorError(event.kind, "collective", by_log=True)
    return None


def _log_of(case: Case, rank: int, end: Event) -> Path | None:
    """Return the log of a process; None where the processes of the rank's logs cannot be determined."""
    logs = case.artifacts.worker_logs(TRAIN, rank)
    pids = [event.pid for event in case.history.select("rank.exit", attempt=TRAIN, rank=rank)]
    return logs[pids.index(end.pid)] if len(logs) == len(pids) and end.pid in pids else None


def _is_of_collective(text: str) -> bool:
    """Return whether the text of an exception, with its class before it, is of a collective or of its store."""
    line = text.partition("\n")[0]
    if line.partition(":")[0].rpartition(".")[2] in _CLASSES:
        return True
    event = TorchRankLogReader(timezone.utc).read(line)
    if event is None:
        return False
    return event.kind.startswith(_KINDS) or event.fields.get("error") in _OF_DEVICES
