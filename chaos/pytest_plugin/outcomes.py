"""The ends of a scenario's test that pytest shows by their text alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:

    class _Outcome(Exception):
        def __init__(self, msg: str, pytrace: bool) -> None: ...
else:
    # pytest shows the text of this kind of exception alone, without a traceback, also when it comes from a set-up.
    _Outcome = pytest.fail.Exception


class ScenarioFailed(_Outcome):
    """The verdict is fail: an expectation was not met."""

    __module__ = "builtins"


class FailedElsewhere(_Outcome):
    """The verdict is fail, but not in the checks in which the scenario's known finding fails."""

    __module__ = "builtins"


class NoVerdict(_Outcome):
    """There is no verdict, or it is unknown."""

    __module__ = "builtins"
