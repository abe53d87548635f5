"""The arithmetic of a conformance job, and what a job without faults ends with: nothing of any SDK."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    State = NDArray[Any]


def first_state(rank: int, incarnation: int) -> State:
    """The same in every rank; another one in a process that replaces a lost one, so that a missing copy shows."""
    return numpy.full((2, 8), 1.0 + (1 + rank) * incarnation, "float32")


def share(state: State, rank: int, step: int) -> State:
    """A rank's part of the gradient of a step."""
    return numpy.asarray(numpy.full_like(state, (rank + 1) / (step + 1)) - 0.125 * state, "float32")


def advance(state: State, gradient: State) -> None:
    """Train ``state``, weights and moments, by a gradient."""
    state[1] = 0.5 * state[1] + gradient[1]
    state[0] += 0.25 * state[1]


def digest(state: State) -> str:
    """Equal for equal bits."""
    return hashlib.sha256(state.tobytes()).hexdigest()


def undisturbed(ranks: int, steps: int) -> str:
    """The digest that every rank ends with when nothing goes wrong."""
    state = first_state(0, 0)
    for step in range(1, steps + 1):
        total = share(state, 0, step)
        for rank in range(1, ranks):
            total = total + share(state, rank, step)
        advance(state, total / ranks)
    return digest(state)
