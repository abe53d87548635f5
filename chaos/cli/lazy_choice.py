"""A choice of an option whose words are looked up when they are shown or compared, not when a command is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # generic since click 8.2


class LazyChoice(_Choice):
    """A choice among the words that ``words`` returns."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        """Keep ``words``; the constructor of click would call it."""
        self._words = words
        self.case_sensitive = True

    def __getattr__(self, name: str) -> Any:
        """Look up the words at the first use."""
        if name != "choices":
            raise AttributeError(name)
        self.choices = tuple(self._words())
        return self.choices
