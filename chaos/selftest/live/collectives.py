"""Defects of the communicator after a recovery: before the first fault they would affect another job."""

from __future__ import annotations

from typing import Any, Callable

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_LAST_STEP = 6
"""The last step of the base scenario."""


def _sums_otherwise(agent: Agent, otherwise: Callable[[Any, Any, Any], Any]) -> None:
    """From the second communicator of a process on, change the result of a sum over gradients.

    ``otherwise`` reports each change by :func:`acted`.
    """
    made = []

    @replaces(agent, "chaos.rehearsal.device.communicator", "Communicator.join")
    def join(original: Any, self: Any) -> None:
        made.append(self)
        original(self)

    @replaces(agent, "chaos.rehearsal.device.communicator", "Communicator.all_reduce")
    def all_reduce(original: Any, self: Any, array: Any, group: Any = None) -> Any:
        if len(made) < 2 or array.size < 1000:
            return original(self, array, group)
        return otherwise(lambda values: original(self, values, group), self, array)


def drift(agent: Agent) -> None:
    """Make sums too large by one part in a million."""
    _sums_otherwise(agent, lambda reduce, communicator, array: _too_large(agent, reduce(array)))


def drift_on_one_rank(agent: Agent) -> None:
    """Make sums too large by one part in a million on rank 1 alone: rank 0's losses are right."""
    _sums_otherwise(
        agent,
        lambda reduce, communicator, array: (
            _too_large(agent, reduce(array)) if communicator.rank == 1 else reduce(array)
        ),
    )


def gradient_dropped(agent: Agent) -> None:
    """Leave the gradients of rank 1 out of the sum."""

    def otherwise(reduce: Any, communicator: Any, array: Any) -> Any:
        if communicator.rank == 1 and array.any():
            acted(agent, "gradients are left out of the sum")
            array = array * 0
        return reduce(array)

    _sums_otherwise(agent, otherwise)


def order_of_arrival(agent: Agent) -> None:
    """Let each rank sum the others' gradients in an order of its own."""

    def otherwise(reduce: Any, communicator: Any, array: Any) -> Any:
        # Own part first, as if the others came later: float addition is not associative.
        total = reduce(array)
        return _own_first(agent, total, array) if communicator.rank else total

    _sums_otherwise(agent, otherwise)


def order_from_the_beginning(agent: Agent) -> None:
    """Do the same from the first step on: then the job was never deterministic, and nothing can be compared."""

    @replaces(agent, "chaos.rehearsal.device.communicator", "Communicator.all_reduce")
    def all_reduce(original: Any, self: Any, array: Any, group: Any = None) -> Any:
        total = original(self, array, group)
        return total if array.size < 1000 else _own_first(agent, total, array)


def last_update_drifts(agent: Agent) -> None:
    """Make sums too large by one part in a million in the last step alone: every loss is right."""

    def otherwise(reduce: Any, communicator: Any, array: Any) -> Any:
        assert agent.barriers is not None
        total = reduce(array)
        return _too_large(agent, total) if agent.barriers.step == _LAST_STEP else total

    _sums_otherwise(agent, otherwise)


def _too_large(agent: Agent, total: Any) -> Any:
    drifted = total * total.dtype.type(1.000001)
    if (drifted != total).any():
        acted(agent, "a sum of gradients is too large by one part in a million")
    return drifted


def _own_first(agent: Agent, total: Any, contribution: Any) -> Any:
    other = (total - contribution) + contribution
    if (other != total).any():
        acted(agent, "gradients are summed in an order of this rank's own")
    return other
