"""The answer of ``chaos run --json``: the results of the cells, or the error that kept them from a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.api.errors import CannotRun, ChaosError, HarnessFailed, Interrupted
from chaos.api.results import Run, run_of

_ERRORS: dict[int, tuple[type[ChaosError], str]] = {
    3: (HarnessFailed, "the harness failed"),
    64: (CannotRun, "the scenario cannot be used"),
    130: (Interrupted, "the run was interrupted"),
}
"""The error of each exit status without a verdict."""


@dataclass(frozen=True)
class Answer:
    """The results of the cells that were run, each with its run and directory, and their comparisons."""

    results: tuple[Mapping[str, Any], ...]
    comparisons: Sequence[Mapping[str, Any]]

    def runs(self) -> tuple[Run, ...]:
        """Return the runs."""
        own = ("run", "directory")
        return tuple(
            run_of({key: value for key, value in result.items() if key not in own}, Path(result["directory"]))
            for result in self.results
        )


def read_answer(name: str, cells: int, pairs: int, status: int, output: str, errors: str) -> Answer:
    """Read the answer about so many cells and compared pairs. Raises ChaosError where the run gave no verdict.

    After a cell that does not pass the next one is not run; its own verdict is enough then.
    """
    from chaos.report.result import from_json

    try:
        answer = json.loads(output)
        results = tuple(
            {**cell["result"], "run": cell["run"], "directory": cell["directory"]} for cell in answer["cells"]
        )
        compared: Sequence[Mapping[str, Any]] = answer.get("comparisons", [])
        verdicts = [judged["verdict"] for judged in (*results, *compared)]
        complete = len(results) == cells and len(compared) == pairs
        if status in (0, 1, 2) and results and (complete or verdicts[-1] != "pass"):
            for result in results:
                from_json(dict(result))
            return Answer(results, compared)
    except (ValueError, KeyError, TypeError):
        pass  # There is no result to read; what the command said on its way is shown instead.
    kind, reason = _ERRORS.get(status, (HarnessFailed, f"chaos ended with status {status} and no result"))
    raise kind(f"{name}: {reason}\n{errors.strip() or output.strip()}")
