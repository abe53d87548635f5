"""The runs of a store as OpenMetrics text, for a scraper such as Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.evidence.finding import Verdict
from chaos.trends.row import VERSIONS as FIELDS
from chaos.trends.row import RunRow
from chaos.trends.series import Series, series_of

VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "unknown")


@dataclass(frozen=True)
class Family:
    """A metric family: its name without the suffix of samples, its type, its unit where it has one, and its help."""

    name: str
    kind: str
    help: str
    unit: str = ""


RUNS = Family("chaos_runs", "counter", "Runs in the store, by verdict.")
VERDICT = Family("chaos_verdict", "stateset", "Verdict of the newest run.")
STARTED = Family("chaos_run_started_seconds", "gauge", "Start of the newest run, in seconds of the epoch.", "seconds")
LENGTH = Family("chaos_run_seconds", "gauge", "Length of the newest run.", "seconds")
RECOVERY = Family("chaos_recovery_seconds", "gauge", "Recovery of the newest passing run.", "seconds")
PHASE = Family("chaos_recovery_phase_seconds", "gauge", "Phase of a recovery, newest passing run.", "seconds")
BUDGET = Family("chaos_recovery_phase_budget_seconds", "gauge", "Budget of a phase, newest passing run.", "seconds")
VERSIONS = Family("chaos_run_versions", "info", "Versions of the newest run.")

FAMILIES = (RUNS, VERDICT, STARTED, LENGTH, RECOVERY, PHASE, BUDGET, VERSIONS)


def openmetrics(rows: Iterable[RunRow]) -> str:
    """Return the text. ``rows`` come oldest first; runs of soaks and interrupted ones do not count."""
    every = series_of(rows)
    lines: list[str] = []
    for family in FAMILIES:
        lines.append(f"# TYPE {family.name} {family.kind}")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        for series in every:
            lines.extend(_samples(family, series))
    return "\n".join([*lines, "# EOF"]) + "\n"


def _samples(family: Family, series: Series) -> Iterator[str]:
    newest, labels = series.newest, _labels(series.newest)
    passing: Sequence[RunRow] = [row for row in series.rows if row.verdict == "pass"][-1:]
    if family is RUNS:
        counts = Counter(row.verdict for row in series.rows)
        for verdict in VERDICTS:
            yield _sample(f"{RUNS.name}_total", {**labels, "verdict": verdict}, counts[verdict])
    elif family is VERDICT:
        for verdict in VERDICTS:
            yield _sample(VERDICT.name, {**labels, VERDICT.name: verdict}, int(newest.verdict == verdict))
    elif family is STARTED:
        yield from _known(STARTED.name, labels, None if newest.begun is None else newest.begun.timestamp())
    elif family is LENGTH:
        yield from _known(LENGTH.name, labels, newest.seconds)
    elif family is RECOVERY:
        for row in passing:
            yield from _known(RECOVERY.name, labels, row.total)
    elif family in (PHASE, BUDGET):
        for row in passing:
            values = {phase.name: phase.seconds if family is PHASE else phase.budget for phase in row.phases}
            for name, value in values.items():
                yield from _known(family.name, {**labels, "phase": name}, value)
    else:
        versions = {name: getattr(newest, name) for name in FIELDS if name not in labels}
        yield _sample(f"{VERSIONS.name}_info", {**labels, **versions}, 1)


def _labels(row: RunRow) -> dict[str, str]:
    ranks = "" if row.ranks is None else str(row.ranks)
    sdk = row.sdk.partition(" ")[0]
    return {"scenario": row.scenario, "cell": row.cell, "platform": row.platform, "sdk": sdk, "ranks": ranks}


def _known(name: str, labels: Mapping[str, str], value: float | None) -> Iterator[str]:
    if value is not None:
        yield _sample(name, labels, value)


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    listed = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{listed}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
