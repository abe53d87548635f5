"""The arguments of a training script of Megatron, as its own parser reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """One argument: its name with the dashes, its value, and its position in ``job.arguments``.

    ``value`` is None where none follows.
    """

    name: str
    value: str | None
    index: int

    @property
    def path(self) -> str:
        """The key of the scenario that it stands at."""
        return f"job.arguments.{self.index}"


class Arguments:
    """The arguments by name. Where one is given twice, the last counts."""

    def __init__(self, words: Iterable[object]) -> None:
        self._by_name: dict[str, Argument] = {}
        texts = [str(word) for word in words]
        for index, text in enumerate(texts):
            if not text.startswith("--"):
                continue
            name, equals, value = text.partition("=")
            following = texts[index + 1] if index + 1 < len(texts) else "--"
            given = value if equals else None if following.startswith("--") else following
            self._by_name[name] = Argument(name, given, index)

    def get(self, name: str) -> Argument | None:
        """Return the argument of that name, None without it."""
        return self._by_name.get(name)

    def first(self, *names: str) -> Argument | None:
        """Return the first of these that is given."""
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def whole(self, name: str, default: int) -> int:
        """Return the value as a whole number of 1 or more, ``default`` without one; the parser refuses any other."""
        argument = self._by_name.get(name)
        text = "" if argument is None or argument.value is None else argument.value
        return int(text) if text.isdecimal() and int(text) > 0 else default
