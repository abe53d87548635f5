"""Trends as tables for a terminal, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chaos.trends.gate_text import changed, count
from chaos.trends.trend import PhaseTrend, Trend

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "._-=+*%#"
_WIDTH = 30
"""Characters of a sparkline: of more runs each character stands for several."""

COLUMNS = ("cell", "run", "phase", "seconds")


def print_trends(trends: Iterable[Trend], console: Console) -> None:
    """Print a table for each cell, and its change points below it. Text of runs is text, never markup."""
    for trend in trends:
        counts = ", ".join(f"{number} {verdict}" for verdict, number in trend.verdicts.items() if number)
        console.print(
            Text(f"{trend.name}: {count(trend.runs, 'run')} ({counts}), {trend.first[:10]} to {trend.last[:10]}")
        )
        table = Table(box=None, pad_edge=False)
        for name in ("phase", "runs", "p50 s", "p95 s", "spread", "from old to new"):
            table.add_column(name, justify="left" if name in ("phase", "from old to new") else "right")
        for phase in trend.phases:
            spread = "-" if phase.spread is None else f"{phase.spread:.0%}"
            line = sparkline(phase.times, unicode=console.encoding.lower().startswith("utf"))
            figures = (str(len(phase.times)), f"{phase.p50:.2f}", f"{phase.p95:.2f}", spread, line)
            table.add_row(Text(phase.phase), *(Text(figure) for figure in figures))
        console.print(table)
        for phase in trend.phases:
            _print_points(phase, console)
        console.print()


def _print_points(phase: PhaseTrend, console: Console) -> None:
    for point in phase.change_points:
        before, now = point.medians
        share = f" ({now / before - 1:+.0%})" if before > 0 else ""
        text = f"{phase.phase}: {before:.2f} s → {now:.2f} s{share} from {point.started[:10]} on, {point.run}; "
        console.print(Text(f"{text}Pettitt's test, p = {point.p:.1e}; {changed(point.changes)}"))


def sparkline(times: Sequence[float], *, unicode: bool = True) -> str:
    """Return the times as a row of bars, the lowest for the shortest time. Of many runs a bar shows the mean."""
    bars = _BARS if unicode else _ASCII_BARS
    count = min(len(times), _WIDTH)
    groups = [times[len(times) * place // count : len(times) * (place + 1) // count] for place in range(count)]
    means = [sum(group) / len(group) for group in groups]
    low, high = min(means), max(means)
    scale = (len(bars) - 1) / (high - low) if high > low else 0.0
    return "".join(bars[round((mean - low) * scale)] for mean in means)


def as_csv(trends: Iterable[Trend]) -> str:
    """Return a line for each time of each phase. A cell that a spreadsheet would take for a formula gets a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trend in trends:
        for phase in trend.phases:
            for run, seconds in zip(phase.runs, phase.times, strict=True):
                writer.writerow([*(_plain(text) for text in (trend.name, run, phase.phase)), f"{seconds:.6f}"])
    return out.getvalue()


def _plain(text: str) -> str:
    return f"'{text}" if text[:1] in "=+-@\t\r" else text
