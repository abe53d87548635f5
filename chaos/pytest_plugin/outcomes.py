"""The ends of a scenario's test, and the text of each: its headline first, at most ten lines, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:

    class _Failure(Exception):
        def __init__(self, msg: str, pytrace: bool) -> None: ...
else:
    # Reports of other tools (Allure) tell a failure from a broken test by this class.
    _Failure = pytest.fail.Exception


class VerdictFail(_Failure):
    """The verdict is fail."""

    __module__ = "builtins"

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(shortened(lines), pytrace=False)


class ScenarioFailed(VerdictFail):
    """The verdict is fail: an expectation was not met."""

    __module__ = "builtins"


class FailedElsewhere(VerdictFail):
    """The verdict is fail, but not in the checks in which the scenario's known finding fails."""

    __module__ = "builtins"


class NoVerdict(Exception):
    """There is no verdict, or it is unknown. It is no failure: nothing was shown about the job."""

    __module__ = "builtins"

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(shortened(lines))


def shortened(lines: Sequence[str]) -> str:
    """Return the lines as text. Of more than ten lines the first and the last one are kept, which says where to look.

    A line in their place gives the number of those left out.
    """
    from chaos.report.short import MOST_LINES

    if len(lines) > MOST_LINES:
        kept = lines[: MOST_LINES - 2]
        lines = [*kept, f"… {len(lines) - len(kept) - 1} lines more", lines[-1]]
    return "\n".join(lines)
