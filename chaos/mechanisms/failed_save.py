"""Part of check ``mechanism``: a save that the storage must refuse has failed for that reason and no other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.evidence.facts import TRAIN
from chaos.mechanisms.case import Case
from chaos.plan.parts.fault import (
    STORAGE_DENIED,
    STORAGE_ERROR,
    STORAGE_FULL,
    STORAGE_GONE,
    STORAGE_READ_ONLY,
    VOLUME_GONE,
)

ERRORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        STORAGE_FULL: ("[Errno 28]", "No space left on device"),
        STORAGE_READ_ONLY: ("[Errno 30]", "Read-only file system"),
        STORAGE_ERROR: ("[Errno 5]", "Input/output error"),
        STORAGE_GONE: ("[Errno 2]", "No such file or directory"),
        VOLUME_GONE: ("[Errno 2]", "No such file or directory"),
        STORAGE_DENIED: ("[Errno 1]", "[Errno 13]", "Operation not permitted", "Permission denied"),
    }
)
"""What the error of a save says, by the effect of the storage fault."""


def judge_refused(case: Case, handlers: tuple[str, ...]) -> None:
    """Judge the errors of the handlers. Says nothing where the plan has no fault of the storage.

    A volume that was taken from a node is the reason of its own ranks alone, where one of them is told to save.
    """
    begun = case.window.of(case.history.select("handler.enter", attempt=TRAIN))
    saving = {event.rank for event in begun if event.data.get("name") in handlers}
    faults = [
        fault
        for fault in case.plan.faults
        if fault.effect in ERRORS and (fault.effect != VOLUME_GONE or saving.intersection(fault.ranks))
    ]
    if not faults:
        return
    expected = f"the save fails because of fault {', '.join(fault.id for fault in faults)}"
    failed = [
        event
        for event in case.window.of(case.history.select("handler.exit", attempt=TRAIN, ok=False))
        if event.data.get("name") in handlers
    ]
    for event in failed:
        error = str(event.data.get("error"))
        own = [fault for fault in faults if fault.effect != VOLUME_GONE or event.rank in fault.ranks]
        texts = [text for fault in own for text in ERRORS[fault.effect]]
        if not any(text in error for text in texts):
            case.found.fail(
                expected, f"{event.data['name']} failed on rank {event.rank}: {error}", case.line, event.source
            )
    if not failed:
        case.found.unknown(expected, "no handler has recorded an error", case.line)
    seen = "; ".join(f"{event.data['name']} on rank {event.rank}: {event.data.get('error')}" for event in failed[:3])
    case.found.settle(expected, seen, case.line, *(event.source for event in failed[:3]))
