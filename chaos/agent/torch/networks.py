"""The networks of a training beside the model that begins its steps, as a GAN has one: their weights and buffers.

The weights are those of the script's optimizers that the model does not have. The modules of the script name them: the
smallest modules that hold most of them and no weight of the model; of several with the same weights the outermost,
whose names a ``state_dict`` has. The second network has the prefix ``network2.``. A weight of no module is
``optimizer.parameter.N`` of its optimizer.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from chaos.agent.torch.names import bare, is_saved, named_optimizers

_MODULES = "torch.nn.modules.module"


def modules_alive() -> list[Any]:
    """Return every module of this process. No hook sees them made: a copy runs no ``__init__``.

    The type of an object is asked, and not the object: a proxy might do its work then.
    """
    module: Any = sys.modules.get(_MODULES)
    return [] if module is None else [held for held in gc.get_objects() if issubclass(type(held), module.Module)]


class Networks:
    """The networks beside a model. They are looked for when the weights beside the model have changed."""

    def __init__(self, find: Callable[[], list[Any]] = modules_alive) -> None:
        self._find = find
        self._sought: tuple[int, ...] = ()
        self._networks: list[weakref.ref[Any]] = []

    def state(self, model: Any, optimizers: list[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the weights of the optimizers that the model lacks, and the saved buffers beside them, by name."""
        own = {id(value) for value in (*model.parameters(), *(buffer for _, buffer in model.named_buffers()))}
        beside = _beside(own, optimizers)
        if not beside:
            return
        if tuple(beside) != self._sought or any(network() is None for network in self._networks):
            found = networks_of([weight for _, weight in beside.values()], own, self._find())
            self._sought, self._networks = tuple(beside), [weakref.ref(network) for network in found]
        named = own
        for number, held in enumerate(self._networks, 2):
            for name, value in _state_of(held()):
                if id(value) not in named and (id(value) in beside or not getattr(value, "requires_grad", False)):
                    named.add(id(value))
                    yield f"network{number}.{name}", value
        yield from ((name, weight) for name, weight in beside.values() if id(weight) not in named)


def _state_of(network: Any) -> Iterator[tuple[str, Any]]:
    """Yield the weights and saved buffers of a network; nothing of one that is gone."""
    if network is not None:
        yield from ((bare(name), weight) for name, weight in network.named_parameters())
        yield from ((bare(name), buffer) for name, buffer in network.named_buffers() if is_saved(network, name))


def _beside(own: set[int], optimizers: list[Any]) -> dict[int, tuple[str, Any]]:
    """Return the weights of the optimizers that the model lacks, each with its name for the case of no module."""
    beside: dict[int, tuple[str, Any]] = {}
    for prefix, optimizer in named_optimizers(optimizers):
        weights = (weight for group in optimizer.param_groups for weight in group["params"])
        for place, weight in enumerate(weights):
            if id(weight) not in own:
                beside.setdefault(id(weight), (f"{prefix}.parameter.{place}", weight))
    return beside


def networks_of(weights: list[Any], own: set[int], modules: Iterable[Any]) -> list[Any]:
    """Return the modules that hold the weights, in the order of the weights; each holds most of what is left then.

    A module with a value of the model, whose ids are ``own``, is none of them.
    """
    places = {id(weight): place for place, weight in reversed(list(enumerate(weights)))}
    candidates = [_Candidate(module) for module in _holders(set(places), list(modules))]
    rest, found = set(places), []
    while candidates := [each for each in candidates if own.isdisjoint(each.weights) and rest & each.weights]:
        best = min(candidates, key=lambda candidate: (-len(rest & candidate.weights), *candidate.size))
        found.append(best)
        rest -= best.weights
    found.sort(key=lambda candidate: min(places[weight] for weight in candidate.weights if weight in places))
    return [candidate.module for candidate in found]


class _Candidate:
    """A module that holds some of the weights. ``size`` sorts the smallest first, then the outermost."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.weights = frozenset(id(weight) for weight in module.parameters())
        names = sorted(name for name, _ in _state_of(module))
        self.size = len(names), -sum(map(len, names)), names


def _holders(weights: set[int], modules: list[Any]) -> list[Any]:
    """Return the modules that hold any of the weights, by themselves or through a module within them."""
    outer: dict[int, list[Any]] = {}
    for module in modules:
        for within in module.__dict__.get("_modules", {}).values():
            outer.setdefault(id(within), []).append(module)
    own = (module.__dict__.get("_parameters", {}).values() for module in modules)
    new = [module for module, values in zip(modules, own) if not weights.isdisjoint(map(id, values))]
    holders: dict[int, Any] = {}
    while new:
        module = new.pop()
        if id(module) not in holders:
            holders[id(module)] = module
            new += outer.get(id(module), ())
    return list(holders.values())
