"""The lines of a training loop that a chaos test can follow, for every framework. Copy this file beside the script.

Without a chaos test each function here returns at once, and this file needs only Python 3.9::

    import chaos_steps

    chaos_steps.state_is(network, optimizer)     # once, before the first step
    for step in range(done + 1, steps + 1):      # counted from 1 over the whole job, also when it is started again
        batch = next(batches)
        chaos_steps.step_begins(step, batch)
        loss = train_step(batch)
        chaos_steps.step_ends(loss)

In a chaos test the agent of chaos sees that this file is imported, and takes the calls.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Callable

VERSION = 1
"""The version of this file. A newer chaos takes the calls of an older file."""

_agent: Callable[..., Any] | None = None
"""Set by the agent. It takes the name of a function of this file, and the arguments of the call."""


def state_is(*parts: Any) -> None:
    """Name the state of the training: everything that a checkpoint has to restore.

    A part is a network or an optimizer of MindSpore or PyTorch, a dictionary of arrays by name, pairs of name and
    array, or a function that returns one of these. It is read after every step. Arrays that each step makes anew, as
    in JAX, need a function.
    """
    if _agent is not None:
        _agent("state_is", parts=parts)


def step_begins(step: int, batch: Any = None) -> None:
    """Begin a step; ``batch`` is an array, or several, and is compared with the batch of the fault-free run.

    Without a batch nothing shows that none was skipped, and the run is *unknown*.
    """
    if _agent is not None:
        _agent("step_begins", step=step, batch=batch)


def step_ends(loss: Any = None) -> None:
    """End the step, after the update of the weights and before a checkpoint of this step is saved."""
    if _agent is not None:
        _agent("step_ends", loss=loss)


def reached(phase: str) -> None:
    """Say that the step is at ``forward``, ``allreduce.enter`` or ``optimizer.update``; faults can hit there."""
    if _agent is not None:
        _agent("reached", phase=phase)


def saved(path: Any, step: int | None = None) -> None:
    """Say that a checkpoint was saved in this file; ``step`` is its last step, by default the last that has begun.

    MindSpore's own functions need neither this nor :func:`saving`.
    """
    if _agent is not None:
        _agent("saved", path=path, step=step)


def saving(path: Any, step: int | None = None) -> AbstractContextManager[None]:
    """Wrap the saving of a checkpoint in a ``with`` block, so that faults can hit its beginning and its end."""
    return nullcontext() if _agent is None else _agent("saving", path=path, step=step)


def loaded(path: Any, step: int | None = None) -> None:
    """Say that a checkpoint was loaded from this file. MindSpore's own functions need no such line."""
    if _agent is not None:
        _agent("loaded", path=path, step=step)
