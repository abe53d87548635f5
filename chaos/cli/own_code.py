"""The allowance for the scenarios' own code, by the command line and by the project's settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from chaos.base.refusal import Refused
from chaos.own.allowed import NOTHING, Allowed, allowed, has_own_code, refuse_unallowed
from chaos.own.settings import allowed_by_settings
from chaos.run.prepare.prepared import Prepared


def allowance(cells: Sequence[Prepared], checks: Sequence[str], hooks: Sequence[str]) -> Allowed:
    """Return what the cells may run of their own. Raises click.UsageError for what is not allowed or not there."""
    allowance_of_call = NOTHING
    try:
        given = allowed(checks, hooks)
        for prepared in cells:
            if not has_own_code(prepared.scenario):
                continue
            path = prepared.loaded.path.absolute()
            for_cell = given | allowed_by_settings(Path.cwd(), path)
            refuse_unallowed(prepared.scenario, path.parent, for_cell)
            allowance_of_call |= for_cell
    except Refused as error:
        raise click.UsageError(str(error)) from None
    return allowance_of_call
