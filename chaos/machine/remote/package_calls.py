"""The harness's side of the helper's report of the packages on its node."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.machine.remote.packages import SECONDS
from chaos.machine.remote.replies import Asking, list_of, text

_MORE_SECONDS = 15.0
"""Seconds for the way there and back."""


class PackageCalls(Asking):
    """Typed calls. Every call raises HelperLost when the helper has ended, and PlatformError for a refused request."""

    def lacking(self, python: str, needs: Sequence[str], path: str = "") -> list[str]:
        """Return the packages that this Python lacks there; ``path`` is the job's own PYTHONPATH."""
        seconds = SECONDS + _MORE_SECONDS
        return self._ask(list_of(text), "lacking", seconds=seconds, python=python, needs=list(needs), path=path)
