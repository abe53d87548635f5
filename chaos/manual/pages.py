"""The generated pages by the places of their files in docs/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chaos.manual.checks import checks_page
from chaos.manual.faults import faults_page
from chaos.manual.man_page import man_page
from chaos.manual.scenario import reference
from chaos.manual.simulated import simulated_page
from chaos.scenario.schema import scenario_schema

COMMAND = "python -m chaos.manual"
"""The command that writes all of them anew, from the repository's root."""


def pages(scenarios: Path) -> dict[str, Callable[[], str]]:
    """Return the maker of each page. Some pages quote the shipped scenarios, from the directory ``scenarios``."""
    return {
        "reference/scenario.md": lambda: reference(scenario_schema()),
        "reference/faults.md": faults_page,
        "reference/checks.md": checks_page,
        "reference/simulated.md": lambda: simulated_page(scenarios),
        "man/chaos.1": man_page,
    }
