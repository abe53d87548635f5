"""The output of the command that runs the cells of one test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chaos.pytest_plugin.outcomes import NoVerdict

_REASONS = {3: "the harness failed", 64: "the scenario cannot be used", 130: "the run was interrupted"}
"""What the exit statuses without a verdict mean."""


def read_output(
    name: str, cells: int, status: int, output: str, errors: str
) -> tuple[list[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the results of the cells that ran, and their comparison. Raises NoVerdict if the run gave none."""
    from chaos.report.result import from_json

    try:
        answer = json.loads(output)
        results: list[Mapping[str, Any]] = [
            {**cell["result"], "run": cell["run"], "directory": cell["directory"]} for cell in answer["cells"]
        ]
        compared: Sequence[Mapping[str, Any]] = answer.get("comparisons", [])
        verdicts = [judged["verdict"] for judged in (*results, *compared)]
        complete = len(results) == cells and len(compared) == cells - 1
        # After a cell that does not pass the next one is not run; its own verdict is enough then.
        if status in (0, 1, 2) and results and (complete or verdicts[-1] != "pass"):
            for result in results:
                from_json(dict(result))
            return results, compared
    except (ValueError, KeyError, TypeError):
        pass  # There is no result to read; what the command said on its way is shown instead.
    reason = _REASONS.get(status, f"chaos ended with status {status} and no result")
    raise NoVerdict(f"{name}: {reason}\n{errors.strip() or output.strip()}", pytrace=False)
