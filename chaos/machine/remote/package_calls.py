"""The harness's side of what a remote helper says of the packages on its node."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.machine.remote.packages import SECONDS
from chaos.machine.remote.replies import Asking, each, text

_MORE_SECONDS = 15.0
"""For the way there and back."""


class PackageCalls(Asking):
    """Typed calls. Every one raises HelperLost when the helper has ended, and PlatformError for what it refuses."""

    def lacking(self, python: str, needs: Sequence[str], path: str = "") -> list[str]:
        """Return which of these packages that Python has not there; ``path`` is the job's own PYTHONPATH."""
        seconds = SECONDS + _MORE_SECONDS
        return self._ask(each(text), "lacking", seconds=seconds, python=python, needs=list(needs), path=path)
