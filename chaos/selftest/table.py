"""The result of a selftest on a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from chaos.selftest.defect import Outcome
from chaos.selftest.session import Result

STYLE: dict[Outcome, str] = {
    "caught": "green",
    "wrong reason": "bold red",
    "missed": "bold red",
    "did not act": "yellow",
    "not run": "yellow",
}


def print_selftest(result: Result, console: Console) -> None:
    """Print a row for each defect, then the defects that were not caught at length, then the figures."""
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for column in ("defect", "layer", "check", "outcome"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right", no_wrap=True)
    for row in result.rows:
        defect = row.defect
        outcome = Text(row.outcome, STYLE[row.outcome])
        table.add_row(defect.name, defect.layer, defect.check, outcome, f"{row.seconds:.2f}")
    console.print(table)
    for row in result.rows:
        if not row.caught:
            defect = row.defect
            console.print(Text(f"{defect.name}: ").append(row.outcome, STYLE[row.outcome]), soft_wrap=True)
            _say(console, "what", defect.what)
            _say(console, "wanted", f"{defect.check} {defect.verdict}: {' … '.join(defect.reason)}")
            _say(console, "seen", row.seen)
    for removal in result.passed:
        names = ", ".join(removal.green)
        console.print(f"{removal.base} without {escape(removal.evidence)}: {names} passed", soft_wrap=True)
    for gap in result.stale:
        console.print(f"stale: nothing passed without {escape(gap)}", soft_wrap=True, highlight=False)
    caught = f"{result.caught} of {len(result.rows)} defects caught for the right reason"
    held = f"; {len(result.removals) - len(result.passed)} of {len(result.removals)} times nothing passed"
    evidence_line = f"{held} without its evidence" if result.removals else ""
    console.print(f"{caught}{evidence_line}; {result.seconds:.1f} s", soft_wrap=True, highlight=False)


def _say(console: Console, what: str, text: str) -> None:
    console.print(f"  {what:<8}{escape(text)}", soft_wrap=True, highlight=False)
