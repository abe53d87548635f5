"""A comparison on a terminal: both runs' phases side by side, the phases that shrank, and the statements."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from chaos.report.compare import Comparison, shown
from chaos.report.terminal import STYLE


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the table and the statements. Nothing is cut off."""
    title = Text(f"{comparison.scenario}, compared: ").append(comparison.verdict, STYLE[comparison.verdict])
    console.print(title, soft_wrap=True)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    mechanism = "/".join(dict.fromkeys(name or "nobody" for name in comparison.mechanisms))
    table.add_column(f"recovery by {mechanism}", no_wrap=True)
    for cell in comparison.cells:
        table.add_column(escape(cell), justify="right", overflow="fold")
    table.add_column("change", justify="right", no_wrap=True)
    verdicts = {statement.measure: statement.verdict for statement in comparison.statements}
    for name, figures in comparison.rows.items():
        style = STYLE[verdicts[name]] if name in verdicts else ""
        cells = ["unknown" if figure is None else shown(name, figure) for figure in figures]
        table.add_row(Text(name, style), *cells, Text(_change(*figures), style))
    console.print(table)
    for statement in comparison.statements:
        console.print(
            Text(f"{statement.measure}: ").append(statement.verdict, STYLE[statement.verdict]), soft_wrap=True
        )
        console.print(f"  expected  {escape(statement.expected)}", soft_wrap=True, highlight=False)
        console.print(f"  seen      {escape(statement.seen)}", soft_wrap=True, highlight=False)
    if not comparison.statements:
        console.print(
            "nothing was judged: neither the plan nor --at-most names a measure that must shrink", soft_wrap=True
        )
    for part in comparison.simulated:
        console.print(f"simulated: {escape(part)}", soft_wrap=True)


def _change(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return ""
    return f"{(second - first) / first:+.0%}" if first > 0 else ""
