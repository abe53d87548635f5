"""The line of the scenario that a statement points to."""

from __future__ import annotations

from chaos.plan.model import Plan


def scenario_line(number: int | None) -> str:
    """Return the place of a line of the run's scenario; empty where the plan knows no line."""
    return f"scenario.yaml:{number}" if number else ""


def line_of(plan: Plan, *keys: str) -> str:
    """Return the place of an expectation of the plan: that of the first key with a line; empty where none has one."""
    lines = plan.explanation.lines
    return scenario_line(next((lines[key] for key in keys if key in lines), None))
