"""A view that fails says so in its place: an error of what is shown is none of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group


def never_failing(shown: Callable[[], Group]) -> Callable[[], Group]:
    """Return what shows the same, or the error in a line.

    A display is drawn a last time when it is closed, in the thread of the run: an error there would end the run.
    """

    def guarded() -> Group:
        try:
            return shown()
        except Exception as error:
            from rich.console import Group
            from rich.text import Text

            return Group(Text(f"the view has failed ({type(error).__name__}); the run goes on"))

    return guarded
