"""A run that is described and has not begun."""

from __future__ import annotations

from chaos.plan import io
from chaos.plan.model import Plan
from chaos.store.directory import RunDirectory, update_run


def describe(owned: RunDirectory, plan: Plan) -> None:
    """Write the plan of a run, and what run.json has of it."""
    (owned.path / "plan.json").write_text(io.dumps(plan), "utf-8")
    update_run(owned.path, scenario=plan.identity.scenario, cell=plan.identity.cell, call={"number": 2, "of": 3})
