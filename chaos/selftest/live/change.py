"""Means by which a defect changes a part of its process."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from chaos.agent.start import Agent

TRAIN, RESUME = "train", "resume"
"""The attempts of a run."""

Changed = Callable[..., Any]


def replaces(agent: Agent, module: str, name: str) -> Callable[[Changed], Changed]:
    """Return a decorator that replaces ``name`` (``function`` or ``Class.method``) of a module by the function.

    It is called with the original before all arguments. Done when the module has been imported; AttributeError ends the
    process then if there is nothing of that name, since a run without its defect would prove nothing.
    """

    def change(function: Changed) -> Changed:
        def put(loaded: ModuleType) -> None:
            *path, last = name.split(".")
            owner: Any = functools.reduce(getattr, path, loaded)
            original = getattr(owner, last)

            @functools.wraps(original)
            def changed(*args: Any, **kwargs: Any) -> Any:
                return function(original, *args, **kwargs)

            setattr(owner, last, changed)

        agent.imports.watch(module, put)
        return function

    return change


def state_of(agent: Agent) -> dict[str, Any]:
    """Return a copy of this rank's parameters, optimizer state included, by name."""
    assert agent.barriers is not None
    return {name: parameter.asnumpy().copy() for name, parameter in agent.barriers.parameters}


def is_moment(name: str) -> bool:
    """Return whether a parameter is optimizer state that belongs to a weight."""
    return name.startswith("moments.")
