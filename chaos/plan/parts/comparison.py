"""The comparison of the run with the run of another cell."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Comparison:
    """The comparison of this run with the run whose cell differs in ``axis`` alone.

    ``at_most`` maps a measure to the largest share of the first cell's value that the second cell may have.
    """

    axis: str
    at_most: dict[str, float]


def plan_comparison(scenario: Scenario) -> Comparison | None:
    """Return the comparison with the other cell, None where the scenario compares nothing."""
    compare = scenario.compare
    return None if compare is None else Comparison(compare.axis, dict(compare.at_most))
