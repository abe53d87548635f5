"""A cell ready to be run: everything that is looked up for it, once."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.model import Plan
from chaos.plan.traits import JobTraits
from chaos.run.prepare.inputs import Inputs
from chaos.run.prepare.registered import Registered
from chaos.scenario.load import Cell, LoadedScenario
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Prepared:
    """One matrix cell with its plan and with the registered objects of the names in it.

    Args:
        loaded: the scenario's file.
        cell: the cell, with the timings of the SDK.
        sdk: ``standin`` or ``vendor``: the SDK of the run.
        plan: the plan.
        registered: the registered objects of the names in it.
        traits: the observations that this job allows and its ways of saving.
        needs: names of the probes that must succeed before it can run.
        rank_needs: names of the probes that must succeed where its ranks run.
        inputs: the job's inputs at the time of the plan.
    """

    loaded: LoadedScenario
    cell: Cell
    sdk: str
    plan: Plan
    registered: Registered
    traits: JobTraits
    needs: tuple[str, ...]
    rank_needs: tuple[str, ...]
    inputs: Inputs

    @property
    def scenario(self) -> Scenario:
        """The scenario of the cell."""
        return self.cell.scenario
