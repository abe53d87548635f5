"""Defects of the communicator after a recovery: before the first fault they would be another job's."""

from __future__ import annotations

from typing import Any, Callable

from chaos.agent.start import Agent
from chaos.selftest.live.change import replaces

_LAST_STEP = 6
"""That of the base scenario."""


def _sums_otherwise(agent: Agent, otherwise: Callable[[Any, Any, Any], Any]) -> None:
    """From the second communicator of a process on, change what comes of a sum over gradients."""
    made = []

    @replaces(agent, "chaos.rehearsal.communicator", "Communicator.join")
    def join(original: Any, self: Any) -> None:
        made.append(self)
        original(self)

    @replaces(agent, "chaos.rehearsal.communicator", "Communicator.all_reduce")
    def all_reduce(original: Any, self: Any, array: Any, group: Any = None) -> Any:
        if len(made) < 2 or array.size < 1000:
            return original(self, array, group)
        return otherwise(lambda given: original(self, given, group), self, array)


def drift(agent: Agent) -> None:
    """Sums are too large by one part in a million."""
    _sums_otherwise(agent, lambda reduce, it, array: reduce(array) * array.dtype.type(1.000001))


def drift_on_one_rank(agent: Agent) -> None:
    """Sums are too large by one part in a million on rank 1 alone: rank 0's losses are right."""
    _sums_otherwise(agent, lambda reduce, it, array: reduce(array) * array.dtype.type(1.000001 if it.rank == 1 else 1))


def gradient_dropped(agent: Agent) -> None:
    """The gradients of rank 1 are left out of the sum."""
    _sums_otherwise(agent, lambda reduce, it, array: reduce(array * 0 if it.rank == 1 else array))


def order_of_arrival(agent: Agent) -> None:
    """Each rank sums the others' gradients in an order of its own."""

    def otherwise(reduce: Any, it: Any, array: Any) -> Any:
        # Own part first, as if the others came later: float addition is not associative.
        total = reduce(array)
        return (total - array) + array if it.rank else total

    _sums_otherwise(agent, otherwise)


def order_from_the_beginning(agent: Agent) -> None:
    """The same from the first step on: then the job was never deterministic, and nothing can be compared."""

    @replaces(agent, "chaos.rehearsal.communicator", "Communicator.all_reduce")
    def all_reduce(original: Any, self: Any, array: Any, group: Any = None) -> Any:
        total = original(self, array, group)
        return total if array.size < 1000 else (total - array) + array


def last_update_drifts(agent: Agent) -> None:
    """Sums are too large by one part in a million in the last step alone: every loss is right."""

    def otherwise(reduce: Any, it: Any, array: Any) -> Any:
        assert agent.barriers is not None
        return reduce(array) * array.dtype.type(1.000001 if agent.barriers.step == _LAST_STEP else 1)

    _sums_otherwise(agent, otherwise)
