"""The registered mechanisms, as far as a scenario names them."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from chaos.base.registry import registry


class Switch(Protocol):
    """A mechanism that a scenario switches on. :class:`chaos.plan.registry.Mechanism` is one."""

    @property
    def name(self) -> str:
        """Its name in MS_ENABLE_TFT."""

    @property
    def listed(self) -> int:
        """Its place in lists for a reader."""


@cache
def registered() -> tuple[Switch, ...]:
    """Every registered mechanism, as lists for a reader have them.

    Raises RegistryError where none is registered, or one cannot be imported.
    """
    known = registry("mechanisms")
    found: list[Switch] = [known.load(name) for name in known.some_names()]
    return tuple(sorted(found, key=lambda mechanism: (mechanism.listed, mechanism.name)))


def mechanism_names() -> tuple[str, ...]:
    """The names of :func:`registered`."""
    return tuple(mechanism.name for mechanism in registered())
