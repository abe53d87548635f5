"""What the registries tell a scenario: the names that it may use, and who reads the files of its job."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.scenario.completion import Complete


@dataclass(frozen=True)
class KnownNames:
    """Names from the registries, handed in by the caller. None: that kind of name is not checked.

    ``complete`` reads the files that a job's own framework is configured by; None: nothing is filled in.
    """

    fault_kinds: Collection[str] | None = None
    job_kinds: Collection[str] | None = None
    platforms: Collection[str] | None = None
    complete: Complete | None = None
