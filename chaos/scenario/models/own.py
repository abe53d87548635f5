"""The user's own code beside a scenario: checks in Python, and commands before and after a run.

A scenario only names them. Whoever runs it has to allow each by its name (docs/guides/own-code.md).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chaos.scenario.models.terms import Model, Seconds

MOST = 50
"""Most own checks of a scenario, and most commands of a hook."""

OwnCheck = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}:[A-Za-z_][A-Za-z0-9_]{0,99}$", max_length=201)]
"""``module:function``: a file ``module.py`` beside the scenario, and a function in it."""


class Hook(Model):
    """One command of a hook. No shell reads it."""

    command: tuple[Annotated[str, Field(max_length=4096)], ...] = Field(
        strict=False, min_length=1, max_length=200, description="The program and its arguments, as [./prepare, --fast]."
    )
    limit: Seconds = Field(60.0, gt=0, le=3600, description="Time after which the command is ended.")


Commands = Annotated[tuple[Hook, ...], Field(strict=False, max_length=MOST)]


class Hooks(Model):
    """Commands around a run. Whoever runs it allows each by its name (docs/guides/own-code.md in the repository)."""

    before: Commands = Field((), description="Before the job is started, and before its fault-free run.")
    after: Commands = Field((), description="When all is put back, also after a failed run.")
    notify: Commands = Field((), description="When there is a verdict, which their environment has.")
