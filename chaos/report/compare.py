"""Two finished runs side by side: the time of a recovery without an option and with it, and whether it shrank.

Like a check it is three-valued, and it reads nothing but the files of the runs. Reports of the two runs come in, a
comparison goes out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from chaos.evidence.finding import Verdict, worst
from chaos.report.result import RecoveryResult, Result

MUST_EQUAL = ("scenario", "seed")
MUST_EQUAL_IN_PLAN = ("ranks", "nodes", "last_step", "mechanism", "protection", "timings")
COUNTED = frozenset({"rollback"})
"""Measures in steps; all others are in seconds."""


@dataclass(frozen=True)
class Statement:
    """Whether one measure of the second run is at most ``share`` of the first run's."""

    measure: str
    share: float
    verdict: Verdict
    expected: str
    seen: str


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side. ``rows`` maps every measure of either run to both figures, in order.

    ``cells`` name them, without and with the option. ``statements`` is empty where nothing was to be judged; then
    ``verdict`` is unknown. ``simulated`` lists the stand-ins of either run, scaled times included.
    """

    scenario: str
    cells: tuple[str, str]
    mechanisms: tuple[str | None, str | None]
    rows: dict[str, tuple[float | None, float | None]]
    statements: tuple[Statement, ...]
    simulated: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst statement."""
        return worst([statement.verdict for statement in self.statements]) if self.statements else "unknown"

    def to_json(self) -> dict[str, Any]:
        """Return plain data (docs/reference/result-format.md)."""
        return {"verdict": self.verdict, **asdict(self)}


def compare(first: Result, second: Result, at_most: dict[str, float] | None = None) -> Comparison:
    """Compare ``second`` with ``first``.

    ``at_most`` maps a measure to the largest share of the first run's; by default the second run's plan gives it. A
    measure that either run lacks is unknown. Everything is unknown where the runs are not of one kind or either did not
    pass: then their phases are not the phases of the planned recovery.
    """
    planned = second.plan.get("comparison") or {}
    shares = planned.get("at_most", {}) if at_most is None else at_most
    doubt = _incomparable(first, second, planned.get("axis"))
    names = list(dict.fromkeys([*first.recovery.phases, *second.recovery.phases, "total", "rollback", "stalled"]))
    rows = {name: (first.recovery.measure(name), second.recovery.measure(name)) for name in [*names, *shares]}
    return Comparison(
        second.scenario,
        (first.cell or "the first run", second.cell or "the second run"),
        (first.recovery.mechanism, second.recovery.mechanism),
        {name: both for name, both in rows.items() if both != (None, None) or name in shares},
        tuple(
            _state(name, share, rows[name], doubt, _error(name, share, first.recovery, second.recovery))
            for name, share in shares.items()
        ),
        tuple(
            dict.fromkeys(
                f"{stand_in['part']} at: {stand_in['layer']}" for run in (first, second) for stand_in in run.simulated
            )
        ),
    )


def _error(name: str, share: float, first: RecoveryResult, second: RecoveryResult) -> float:
    """Return the seconds by which the second figure may be on the other side of the share of the first figure."""
    return second.errors.get(name, 0.0) + share * first.errors.get(name, 0.0)


def _state(name: str, share: float, figures: tuple[float | None, float | None], doubt: str, error: float) -> Statement:
    before, after = figures
    rule = "no more than" if share == 1 else f"at most {share:g} of"
    expected = f"{name} in the second run is {rule} its value in the first"
    if doubt:
        return Statement(name, share, "unknown", expected, doubt)
    if before is None or after is None:
        which = "both runs" if before == after else "the first run" if before is None else "the second run"
        return Statement(name, share, "unknown", expected, f"it is unknown for {which}")
    summary = f"{shown(name, before)} without, {shown(name, after)} with"
    if share < 1 and before <= 0:
        return Statement(name, share, "unknown", expected, f"{summary}: there is nothing to shrink")
    if error and abs(after - share * before) <= error:
        text = f"{summary}, ± {error:.3f} s: the clocks of several hosts do not show on which side it is"
        return Statement(name, share, "unknown", expected, text)
    return Statement(name, share, "pass" if after <= share * before else "fail", expected, summary)


def _incomparable(first: Result, second: Result, axis: str | None) -> str:
    """Return why nothing can be said about the two runs, empty if something can."""
    for which, run in (("first", first), ("second", second)):
        if run.verdict != "pass":
            return f"the {which} run ({run.cell or run.scenario}) is {run.verdict}"
    differing = [name for name in MUST_EQUAL if getattr(first, name) != getattr(second, name)]
    differing += [name for name in MUST_EQUAL_IN_PLAN if first.plan.get(name) != second.plan.get(name)]
    if _faults(first) != _faults(second):
        differing.append("faults")
    if first.versions != second.versions:
        differing.append("versions")
    if first.cell == second.cell:
        return "both runs are of one cell"
    differing += [f"the variable {name}" for name in _other_values(first, second) if name != axis]
    if axis is not None and _other_parts(first.cell, axis) != _other_parts(second.cell, axis):
        differing.append(f"another axis than {axis}")
    return f"the runs differ in {', '.join(differing)}" if differing else ""


def _faults(result: Result) -> list[tuple[str, tuple[int, ...], str]]:
    faults = result.plan.get("faults") or []
    return [(fault["kind"], tuple(fault["ranks"]), str(fault["trigger"])) for fault in faults]


def _other_values(first: Result, second: Result) -> list[str]:
    """Return the variables with different values; none where a run of an earlier version did not record them.

    With no axis given the cells' own names say how they differ.
    """
    first_values, second_values = first.made.variables, second.made.variables
    if first_values is None or second_values is None:
        return []
    axes = {part.partition("=")[0] for cell in (first.cell, second.cell) for part in cell.split(",")}
    return [
        name
        for name in first_values.keys() & second_values.keys()
        if first_values[name] != second_values[name] and name not in axes
    ]


def _other_parts(cell: str, axis: str) -> list[str]:
    return [part for part in cell.split(",") if not part.startswith(f"{axis}=")]


def shown(name: str, value: float) -> str:
    """Return a figure with its unit."""
    return f"{value:g} steps" if name in COUNTED else f"{value:.3f} s"
