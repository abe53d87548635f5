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
        """Its name in scenarios and, unless the launcher acts, in MS_ENABLE_TFT."""

    @property
    def listed(self) -> int:
        """Its place in lists for a reader."""

    @property
    def restarts_all(self) -> bool:
        """Whether it starts all ranks again."""

    @property
    def of_launcher(self) -> bool:
        """Whether the job's launcher acts, and neither the framework nor the SDK has a part in it."""

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


def agent_restarts_all(protection: Container[str]) -> bool:
    """Return whether the cluster's agent starts all ranks again by one of these mechanisms."""
    return _restarts_all(protection, of_launcher=False)


def launcher_restarts_all(protection: Container[str]) -> bool:
    """Return whether the job's launcher starts all ranks again by one of these mechanisms."""
    return _restarts_all(protection, of_launcher=True)


def launcher_restart() -> str:
    """Return the mechanism by which a job's launcher starts all ranks again.

    Raises StopIteration if none is registered: it comes with this package.
    """
    return next(mechanism.name for mechanism in registered() if mechanism.restarts_all and mechanism.of_launcher)


def _restarts_all(protection: Container[str], *, of_launcher: bool) -> bool:
    return any(
        mechanism.restarts_all and mechanism.of_launcher == of_launcher and mechanism.name in protection
        for mechanism in registered()
    )


def mechanism_names() -> tuple[str, ...]:
    """Return the names of :func:`registered`."""
    return tuple(mechanism.name for mechanism in registered())


def switch_names() -> tuple[str, ...]:
    """Return the names of those that have a switch in MS_ENABLE_TFT: the framework or the SDK has a part in them."""
    return tuple(mechanism.name for mechanism in registered() if not mechanism.of_launcher)
