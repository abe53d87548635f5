"""The registries' contribution to a scenario: the allowed names, and the reader of its job's files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.scenario.completion import Complete


@dataclass(frozen=True)
class KnownNames:
    """Names from the registries, passed in by the caller. None: that kind of name is not checked.

    ``complete`` reads the configuration files of a job's own framework; None: nothing is filled in.
    """

    fault_kinds: Collection[str] | None = None
    job_kinds: Collection[str] | None = None
    platforms: Collection[str] | None = None
    complete: Complete | None = None
