"""One run as a row of the store: the values that trends, gate and exports use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from chaos.evidence.finding import Verdict
from chaos.evidence.text import readable

VERSIONS = ("code", "chaos", "job", "mindspore", "sdk", "platform", "revision")
"""Versions and settings in a row: a change of such a field may explain a change of times."""

MOST_NUMBER = 1e12
"""The largest number of a row. A sum of such numbers is finite, too."""

BEYOND = "beyond"
"""The run failed, and its known finding does not explain all of it."""


@dataclass(frozen=True)
class PhaseTime:
    """One phase of a recovery and its budget, in seconds; None where it could not be measured, or has no budget."""

    name: str
    seconds: float | None
    budget: float | None = None


@dataclass(frozen=True)
class RunRow:
    """One finished run.

    ``started`` and ``ended`` are ISO 8601 in UTC, and empty where the run did not record them. ``seconds`` is the
    length of the run; ``working`` leaves out its baseline and its waiting for one. ``headline`` says the verdict in a
    line, empty for a pass; ``headline_id`` is the same for the same failure in another night, and empty for a pass and
    for a result of an earlier version. ``total`` is the recovery in seconds, ``rollback`` the number of steps trained
    again. ``code`` is the digest of the harness's files, ``job`` that of the job's sources, ``revision`` the commit of
    the CI job. ``load`` is the machine's load of the minute before. ``file`` and ``line`` point at the scenario, at the
    line of the statement that decides the verdict. ``finding`` says whether a known finding shows in runs of the
    scenario: ``always``, ``sometimes``, empty for none, or :data:`BEYOND`. ``soak``: the run is one of many in a soak.
    """

    run: str
    scenario: str
    cell: str
    verdict: Verdict
    headline: str = ""
    started: str = ""
    ended: str = ""
    seconds: float | None = None
    working: float | None = None
    mechanism: str = ""
    total: float | None = None
    rollback: float | None = None
    ranks: int | None = None
    code: str = ""
    chaos: str = ""
    job: str = ""
    mindspore: str = ""
    sdk: str = ""
    platform: str = ""
    revision: str = ""
    ci: str = ""
    host: str = ""
    processors: int | None = None
    load: float | None = None
    file: str = ""
    line: int | None = None
    finding: str = ""
    soak: bool = False
    headline_id: str = ""
    phases: tuple[PhaseTime, ...] = ()

    @property
    def name(self) -> str:
        """The scenario, with its cell in brackets where there is one."""
        return f"{self.scenario}[{self.cell}]" if self.cell else self.scenario

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run: its verdict says nothing about the job, so it is neither good nor bad."""
        return self.verdict == "unknown" and self.headline.startswith(("interrupted;", "interrupted in "))

    @property
    def begun(self) -> datetime | None:
        """The start of the run; None where it is not known."""
        return moment_of(self.started)

    @property
    def known(self) -> bool:
        """Whether the run failed as its known finding says, and in no other check."""
        return self.verdict == "fail" and self.finding in ("always", "sometimes")

    @property
    def excused(self) -> bool:
        """Whether the run failed as a known finding says that shows now and then: it is neither good nor bad."""
        return self.known and self.finding == "sometimes"

    @property
    def loaded(self) -> bool:
        """Whether the machine had more to do than it has processors, in the minute before the run."""
        return self.load is not None and bool(self.processors) and self.load > (self.processors or 0)

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of a run, in the order of :data:`VERSIONS`."""
        return tuple(getattr(self, name) for name in VERSIONS)


def times_of(row: RunRow) -> dict[str, float]:
    """Return the seconds of each phase that was measured, and of the whole recovery as ``total``."""
    times = {phase.name: phase.seconds for phase in row.phases if phase.seconds is not None}
    return times if row.total is None else {**times, "total": row.total}


def changes_between(before: RunRow, after: RunRow) -> dict[str, tuple[str, str]]:
    """Return the fields of :data:`VERSIONS`, and the host, that differ, each with both values."""
    fields = (*VERSIONS, "host")
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in fields}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def moment_of(text: str) -> datetime | None:
    """Return the moment of a text in ISO 8601, in UTC, as is a text without a zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def on_one_line(text: str) -> str:
    """Return a text of somebody else's file, fit to be shown on one line."""
    return readable(text).replace("\n", " ").replace("\t", " ")
