"""The text of a test that does not pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def describe(result: Mapping[str, Any], *, scenario: str) -> list[str]:
    """Return the headline of a result that does not pass, its causes and their places, in at most ten lines.

    ``scenario`` is the file to name for lines of the scenario, of which the run holds only a copy.
    """
    from chaos.report.result import from_json
    from chaos.report.short import short_lines

    return short_lines(from_json(dict(result)), Path(result["directory"]), scenario=scenario)


def describe_comparison(name: str, comparison: Mapping[str, Any]) -> list[str]:
    """Return the expectation of the second run beside the first, and the observation."""
    lines = [f"{name}: compared, {comparison['verdict']}"]
    for statement in comparison["statements"]:
        if statement["verdict"] != "pass":
            lines += [f"  {statement['measure']} ({statement['verdict']})", f"    expected  {statement['expected']}"]
            lines += [f"    seen      {statement['seen']}"]
    return lines
