"""Updates that compute their gradients themselves: ``optimizer.step(closure)``, without which LBFGS makes no update.

The first call of the closure is that of the step: its loss, its batch, its exchange of gradients. An optimizer may call
it again to search along a line, as often as the values need, so the later calls count for nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Callable, Protocol

Arguments = tuple[Any, ...]


class Loop(Protocol):
    """The loop that sees the calls."""

    def gradients_computed(self, optimizer: Any) -> None:
        """See that the gradients of an update are there."""

    def gradients_failed(self) -> None:
        """See that the closure of an update has raised an error."""


class Closures:
    """The closure of the update that runs at present, if it has one. ``runs`` says that its first call does."""

    def __init__(self) -> None:
        self.runs = False
        self._awaited = False

    def await_first(self, awaited: bool) -> None:
        """Note an update, and whether its gradients are still to be computed by its closure."""
        self._awaited = awaited

    @contextmanager
    def call(self, loop: Loop, optimizer: Any) -> Iterator[None]:
        """Wrap a call of the closure."""
        first, self._awaited = self._awaited, False
        if not first:
            yield
            return
        self.runs = True
        try:
            yield
        except BaseException:
            loop.gradients_failed()
            raise
        finally:
            self.runs = False
        loop.gradients_computed(optimizer)


def closure_of(args: Sequence[Any], named: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Return the closure among the arguments of ``Optimizer.step``, whose first is the optimizer."""
    closure = named.get("closure", args[1] if len(args) > 1 else None)
    return closure if callable(closure) else None


def with_closure(
    args: Arguments, named: dict[str, Any], closure: Callable[[], Any]
) -> tuple[Arguments, dict[str, Any]]:
    """Return the arguments of ``Optimizer.step`` with another closure."""
    if "closure" in named:
        return args, {**named, "closure": closure}
    return (args[0], closure, *args[2:]), named


def noting(closures: Closures, loop: Loop, optimizer: Any, closure: Callable[[], Any]) -> Callable[[], Any]:
    """Return a closure whose calls are noted."""

    @functools.wraps(closure)
    def closure_with_agent() -> Any:
        with closures.call(loop, optimizer):
            return closure()

    return closure_with_agent
