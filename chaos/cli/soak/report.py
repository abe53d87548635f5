"""The report of ``chaos soak`` on its runs, and its exit code."""

from __future__ import annotations

from pathlib import Path

import click

from chaos.cli import codes
from chaos.soak.soak import Tally


def print_tallies(tallies: list[Tally], times: int, reports: Path) -> None:
    """Print the results of the runs of each cell."""
    for tally in tallies:
        name = f"{tally.scenario}[{tally.cell}]" if tally.cell else tally.scenario
        counts = ", ".join(f"{count} {verdict}" for verdict, count in tally.verdicts.items() if count)
        counts += f" (differently: {'; '.join(tally.failing)})" if len(tally.failing) > 1 else ""
        counts += f" (not by the finding: {', '.join(tally.unexpected)})" if tally.unexpected else ""
        counts += f", {tally.harness_failed} of the harness" if tally.harness_failed else ""
        counts += "".join(f", {count} by {finding}" for finding, count in tally.by_signature.items())
        mark = (
            "flaky"
            if tally.flaky
            else "good"
            if tally.good and tally.runs >= times
            else "open"
            if tally.good or not tally.runs
            else "bad"
        )
        click.echo(f"{mark:<6}  {tally.runs:4} of {times}  {name}: {counts or 'no run'}")
    good = sum(tally.good and tally.runs >= times for tally in tallies)
    click.echo(f"{good} of {len(tallies)} cells are good {times} times; the runs are in {reports / 'soak.jsonl'}")


def exit_code(tallies: list[Tally], times: int) -> int:
    """Return the exit code. Fewer runs than requested show nothing, whatever became of the others."""
    if any(tally.harness_failed for tally in tallies):
        return codes.HARNESS
    bad = [tally for tally in tallies if tally.runs and not tally.good]
    if any(tally.verdicts["fail"] != 0 or tally.expected_verdict == "fail" for tally in bad):
        return codes.of_verdict("fail")
    lacking = not tallies or any(tally.runs < times for tally in tallies)
    return codes.of_verdict("unknown" if bad or lacking else "pass")
