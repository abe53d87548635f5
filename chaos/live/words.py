"""The words by which every view names the stage of a run, and its clock."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

STAGES: Mapping[str, str] = MappingProxyType(
    {
        "preparing": "preparing",
        "baseline": "fault-free run first",
        "train": "training",
        "between": "between two launches",
        "resume": "resumed training",
        "judging": "judging",
        "ended": "ended",
        "broken off": "broken off: its harness has gone",
        "not followed": "not followed",
    }
)
"""The stages of a run, each with the words for a reader."""

_FAULT_FREE = "fault-free run"


def stage_words(stage: str, verdict: str | None = None, *, fault_free: bool = False) -> str:
    """Return the words for a stage; with the verdict, once there is one.

    ``fault_free``: the run trains without faults, for another run.
    """
    words = _FAULT_FREE if fault_free and stage == "train" else STAGES.get(stage, stage)
    return words if verdict is None else f"{words}: {verdict}"


def clock(seconds: float) -> str:
    """Return a length of time as a clock shows it: 0:07, 12:30, 1:02:03."""
    whole = int(max(0.0, seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
