"""The allowance for the scenarios' own code, by the command line and by the project's settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.base.refusal import Refused
from chaos.own.allowed import NOTHING, STAGES, Allowed, allowed, has_own_code, in_words, refuse_unallowed
from chaos.own.settings import allowed_by_settings
from chaos.scenario.errors import printable

if TYPE_CHECKING:
    from chaos.run.prepare.prepared import Prepared
    from chaos.scenario.load import Cell, LoadedScenario
    from chaos.scenario.models.scenario import Scenario


def allowance(cells: Iterable[tuple[LoadedScenario, Cell]], checks: Sequence[str], hooks: Sequence[str]) -> Allowed:
    """Return what the cells may run of their own. Raises click.UsageError for what is not allowed or not there."""
    allowance_of_call = NOTHING
    try:
        by_flags = allowed(checks, hooks)
        for loaded, cell in cells:
            if not has_own_code(cell.scenario):
                continue
            path = loaded.path.absolute()
            for_cell = by_flags | allowed_by_settings(Path.cwd(), path)
            refuse_unallowed(cell.scenario, path.parent, for_cell)
            allowance_of_call |= for_cell
    except Refused as error:
        raise click.UsageError(str(error)) from None
    return allowance_of_call


def allowance_arguments(checks: Iterable[str], hooks: Iterable[str]) -> list[str]:
    """Return the arguments that give another call of ``chaos run`` the same allowance."""
    of_checks = [part for name in checks for part in ("--allow-checks", name)]
    return of_checks + [part for command in hooks for part in ("--allow-hook", command)]


def without_checks(prepared: Prepared) -> Prepared:
    """Return the cell without its own checks, for runs that are measured and not judged."""
    scenario = prepared.scenario.model_copy(update={"checks": ()})
    return replace(prepared, cell=replace(prepared.cell, scenario=scenario))


def own_code_rows(scenario: Scenario) -> Iterator[str]:
    """Yield a row for each check and command that a run would execute, where it is allowed."""
    for name in scenario.checks:
        yield f"{'own check':<12}{name}, where it is allowed"
    for stage in STAGES:
        for hook in getattr(scenario.hooks, stage):
            yield f"{f'hook {stage}':<12}{printable(in_words(hook.command))}, where it is allowed"
