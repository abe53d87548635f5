"""The cost of failures as tables for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from chaos.trends.cost import HOUR, Cost


def print_cost(cost: Cost, console: Console) -> None:
    """Print the mechanisms, the phases of each, and what is measured and what is assumed."""
    cards, hours = f"{cost.cluster.ranks:,}", f"{cost.cluster.between / HOUR:,.2f}"
    console.print(Text(f"effective training time (ETTR) of {cards} cards with a failure every {hours} hours\n"))
    table = _table("mechanism", "runs", "recovery s", "trained again s", "ETTR")
    for mechanism in cost.mechanisms:
        seconds = (f"{mechanism.recovery:.1f}", f"{mechanism.lost:.1f}")
        table.add_row(Text(mechanism.mechanism), str(mechanism.runs), *seconds, f"{mechanism.ettr:.3%}")
    console.print(table)
    for mechanism in cost.mechanisms:
        console.print(Text(f"\n{mechanism.mechanism}: what each phase costs, and what a minute less of it is worth"))
        table = _table("phase", "p50 s", "cost, % of time", "card hours a month", "a minute less, % of time")
        for phase in mechanism.phases:
            figures = (f"{phase.seconds:.2f}", f"{phase.cost * 100:.4f}", f"{phase.card_hours:,.1f}")
            table.add_row(Text(phase.phase), *figures, f"{phase.minute * 100:.4f}")
        console.print(table)
    console.print()
    for name, sentences in (("measured", cost.measured), ("assumed", cost.assumed)):
        for sentence in sentences:
            console.print(Text(f"{name}: {sentence}"))


def _table(first: str, *names: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
    return table
