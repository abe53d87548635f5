"""The registered mechanisms, as far as a scenario names them."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from typing import Protocol

from chaos.base.registry import registry


class Switch(Protocol):
    """A mechanism that a scenario switches on. :class:`chaos.plan.recovery.registry.Mechanism` is one."""

    @property
    def name(self) -> str:
        """Its name in MS_ENABLE_TFT."""

    @property
    def listed(self) -> int:
        """Its place in lists for a reader."""

    @property
    def restarts_all(self) -> bool:
        """Whether it starts all ranks again."""

    @property
    def safeguarded(self) -> bool:
        """Whether it switches on the mechanism that saves an end-of-life checkpoint."""

    @property
    def saves(self) -> bool:
        """Whether it saves an end-of-life checkpoint."""

    @property
    def strategy(self) -> str | None:
        """The strategy by which the cluster's agent lets it act."""

    @property
    def switched_by(self) -> tuple[str, ...]:
        """Strategies by which MindCluster switches it on."""


@cache
def registered() -> tuple[Switch, ...]:
    """Return every registered mechanism, in the order of lists for a reader.

    Raises RegistryError if none is registered, or one cannot be imported.
    """
    known = registry("mechanisms")
    switches: list[Switch] = [known.load(name) for name in known.some_names()]
    return tuple(sorted(switches, key=lambda mechanism: (mechanism.listed, mechanism.name)))


def restarts_all(protection: Container[str]) -> bool:
    """Return whether one of these mechanisms starts all ranks again."""
    return any(mechanism.restarts_all and mechanism.name in protection for mechanism in registered())


def mechanism_names() -> tuple[str, ...]:
    """Return the names of :func:`registered`."""
    return tuple(mechanism.name for mechanism in registered())
