"""The faults that the runs of a directory have tried, and the faults that no run has tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chaos.report.result import Result

ANY_PHASE = "no phase"
"""The phase of a fault with a trigger that names no phase: a time, a log line, another fault."""


@dataclass(frozen=True)
class Tried:
    """Runs in which a fault landed, by its kind, the phase of the step, the mechanism that answered and its target."""

    kind: str
    phase: str
    mechanism: str
    role: str


@dataclass(frozen=True)
class Coverage:
    """Numbers of runs. ``never`` are the kinds of faults that exist and that no run has shown to land."""

    kinds: tuple[str, ...]
    phases: tuple[str, ...]
    cells: dict[tuple[str, str], int]
    mechanisms: dict[tuple[str, str], int]
    roles: dict[tuple[str, str], int]
    never: tuple[str, ...]

    @property
    def mechanism_names(self) -> list[str]:
        """The mechanisms that acted, in alphabetical order."""
        return sorted({mechanism for _, mechanism in self.mechanisms})

    @property
    def role_names(self) -> list[str]:
        """The roles of the targets, in alphabetical order."""
        return sorted({role for _, role in self.roles})


def coverage(results: Iterable[Result], kinds: Iterable[str]) -> Coverage:
    """Return which of all registered ``kinds`` of faults the runs have tried."""
    return coverage_of(map(tried_in, results), kinds)


def coverage_of(runs: Iterable[frozenset[Tried]], kinds: Iterable[str]) -> Coverage:
    """Return the coverage of runs, from the faults that each has tried."""
    tried = Counter(entry for run in runs for entry in run)
    known = sorted({*kinds, *(entry.kind for entry in tried)})
    landed = {entry.kind for entry in tried}
    return Coverage(
        tuple(kind for kind in known if kind in landed),
        tuple(sorted({entry.phase for entry in tried})),
        _counted(tried, "phase"),
        _counted(tried, "mechanism"),
        _counted(tried, "role"),
        tuple(kind for kind in known if kind not in landed),
    )


def tried_in(result: Result) -> frozenset[Tried]:
    """Return the faults that a run has tried. Only landed faults count: the run shows nothing about the others."""
    return frozenset(_tried(result))


def _counted(tried: Counter[Tried], name: str) -> dict[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    for entry, number in tried.items():
        counts[entry.kind, getattr(entry, name)] += number
    return dict(counts)


def _tried(result: Result) -> Iterable[Tried]:
    landed = {fault.id for fault in result.faults if fault.evidence}
    for fault in result.plan.get("faults") or []:
        if fault.get("id") in landed:
            phase = fault.get("trigger", {}).get("phase")
            yield Tried(
                str(fault.get("kind")),
                phase if isinstance(phase, str) else ANY_PHASE,
                result.recovery.mechanism or "none",
                _role(fault, result.plan.get("replica_groups") or []),
            )


def _role(fault: dict[str, Any], groups: list[list[int]]) -> str:
    """Return the role of the target: a process beside the ranks, a whole replica group, its first rank, or another."""
    if fault.get("role"):
        return str(fault["role"])
    ranks = set(fault.get("ranks") or [])
    if not ranks:
        return "the job"
    if any(set(group) <= ranks for group in groups):
        return "a whole replica group"
    firsts = {min(group) for group in groups if group}
    return "the first of its replica group" if ranks & firsts else "another replica"
