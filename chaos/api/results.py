"""The outcome of a run as plain, frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from chaos.api.errors import NotMeasured

if TYPE_CHECKING:
    from chaos.api.losses import Losses
    from chaos.report.result import Result

Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True)
class Statement:
    """A sentence of a check: the expectation, the observation, and the places to look at.

    ``decides``: the verdict rests on it.
    """

    check: str
    verdict: Verdict
    expected: str
    seen: str
    where: tuple[str, ...] = ()
    decides: bool = False


@dataclass(frozen=True)
class Recovery:
    """The recovery as it was measured. ``phases`` holds seconds by phase, in order, of the measured phases only.

    ``rollback`` is the number of steps that were trained again, ``stalled`` the seconds that saves kept the training;
    each is None where it could not be measured. ``reason`` says why there is no total.
    """

    mechanism: str | None
    phases: Mapping[str, float]
    measured_total: float | None
    rollback: float | None = None
    stalled: float | None = None
    reason: str = ""

    @property
    def total(self) -> float:
        """The seconds of the whole recovery. Raises NotMeasured, so that no comparison passes without a figure."""
        if self.measured_total is None:
            raise NotMeasured(f"the total time of the recovery was not measured: {self.reason or 'no reason is given'}")
        return self.measured_total

    def seconds(self, phase: str) -> float:
        """Return the seconds of a phase. Raises NotMeasured, with the phases that there are."""
        if phase not in self.phases:
            known = ", ".join(self.phases) or "none"
            raise NotMeasured(f"the phase {phase!r} was not measured in this run; measured phases: {known}")
        return self.phases[phase]


@dataclass(frozen=True)
class Run:
    """A run and its verdict.

    ``headline`` says in a line what broke first; it is empty for a pass. ``report`` is the page of the run, None where
    none was made. ``result`` is the whole content of result.json (docs/reference/result-format.md).
    """

    scenario: str
    cell: str
    verdict: Verdict
    headline: str
    statements: tuple[Statement, ...]
    recovery: Recovery
    seed: int
    directory: Path
    report: Path | None
    result: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the run, which is that of its directory."""
        return self.directory.name

    @cached_property
    def losses(self) -> Losses:
        """The losses by step, read from the history of the run at the first use."""
        from chaos.api.losses import read_losses

        return read_losses(self.directory)

    def of_check(self, check: str) -> tuple[Statement, ...]:
        """Return the statements of a check, such as ``"checkpoint"``."""
        return tuple(statement for statement in self.statements if statement.check == check)

    def __str__(self) -> str:
        """Return the run in at most ten lines, as the command line prints it."""
        from chaos.report.result import from_json
        from chaos.report.short import name_of, short_lines

        result = from_json(dict(self.result))
        if self.verdict == "pass":
            return f"{name_of(result)}: pass\nsee {self.report or self.directory}"
        return "\n".join(short_lines(result, self.directory))


def run_of(data: Mapping[str, Any], directory: Path) -> Run:
    """Return the run of a result.json. Raises KeyError, TypeError or ValueError for anything else."""
    from chaos.report.result import from_json
    from chaos.report.short import PAGE, headline_text

    result = from_json(dict(data))
    page = directory / PAGE
    return Run(
        scenario=result.scenario,
        cell=result.cell,
        verdict=result.verdict,
        headline="" if result.verdict == "pass" else headline_text(result),
        statements=tuple(
            Statement(check.name, check.verdict, check.expected, check.seen, check.where, check.order is not None)
            for check in result.checks
        ),
        recovery=_recovery(result),
        seed=result.seed,
        directory=directory,
        report=page if page.is_file() else None,
        result=MappingProxyType(dict(data)),
    )


def _recovery(result: Result) -> Recovery:
    recovery = result.recovery
    phases = {name: seconds for name, seconds in recovery.phases.items() if seconds is not None}
    return Recovery(
        recovery.mechanism,
        MappingProxyType(phases),
        recovery.total,
        recovery.rollback,
        recovery.stalled,
        recovery.reason,
    )
