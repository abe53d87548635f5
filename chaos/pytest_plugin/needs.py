"""The needs of a scenario that this machine does not meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.scenario.models.scenario import Scenario


def unmet_needs(scenario: Scenario, beside: Path, reports: Path) -> list[str]:
    """Return the needs of a scenario in the directory ``beside`` that this machine lacks: a sentence for each."""
    from chaos.doctor import Machine, probe
    from chaos.run.prepare.needs import needs_of_scenario
    from chaos.run.prepare.registered import look_up_names

    names = look_up_names(scenario)
    if names.job.plans_only is not None:
        return [f"jobs of the kind {scenario.job.kind} are planned, and not run: {names.job.plans_only}"]
    machine = Machine(reports=reports, settings=names.named.settings_in(scenario))
    probes = probe(needs_of_scenario(scenario, names, beside), machine)
    return [f"{candidate.need}: {candidate.seen}; {candidate.advice}" for candidate in probes if not candidate.ok]
