"""The step in which a state was taken that a thread of the job's own saves later.

A script copies the state, goes on to train, and writes the copy in the background. Its record must not have the step
at which the writing begins. The weights in it tell the step: those that the rank has recorded after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chaos.agent.torch.names import bare

_MOST_STEPS = 4096
"""Steps that are remembered."""

_MOST_WEIGHTS = 8
"""Weights that tell one state from another."""

_DEEPEST = 3


class TakenStates:
    """The digests of a few weights after each step that has been recorded; ``digest_of`` computes that of a value."""

    def __init__(self, digest_of: Callable[[Any], str | None]) -> None:
        self._digest_of = digest_of
        self._digests: dict[int, dict[str, str]] = {}

    def note(self, step: int, digests: Mapping[str, str]) -> None:
        """Note the state after a step, in place of an earlier training of it."""
        names = [name for name in digests if not name.startswith("optimizer")][:_MOST_WEIGHTS]
        self._digests.pop(step, None)
        self._digests[step] = {name: digests[name] for name in names}
        if len(self._digests) > _MOST_STEPS:
            del self._digests[next(iter(self._digests))]

    def step_of(self, saved: Any) -> int | None:
        """Return the only step after which the rank held the weights in a saved object; None where none is."""
        found: set[int] = set()
        for state in _dictionaries(saved, _DEEPEST):
            found |= self._steps_of(state)
        return found.pop() if len(found) == 1 else None

    def _steps_of(self, state: Mapping[Any, Any]) -> set[int]:
        named = {bare(key): value for key, value in state.items() if isinstance(key, str)}
        digests: dict[str, str | None] = {}
        steps = set()
        for step, held in self._digests.items():
            for name in held:
                if name in named and name not in digests:
                    digests[name] = self._digest_of(named[name])
            if held and all(digests.get(name) == digest for name, digest in held.items()):
                steps.add(step)
        return steps


def _dictionaries(value: Any, depth: int) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, Mapping) and depth:
        yield value
        for held in value.values():
            yield from _dictionaries(held, depth - 1)
