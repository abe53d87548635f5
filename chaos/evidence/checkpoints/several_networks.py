"""The names of a checkpoint with several networks or optimizers of PyTorch, as its rank has recorded them.

A rank numbers its networks and optimizers in the order in which it makes them (:mod:`chaos.agent.torch.networks`). A
script saves them under any keys, in any order, in one file or in several. A network of the rank and a key of the file
belong together where the names behind both are the same; of several such keys the one with most of the values. A value
that has no such name goes by its digest.

A module that wraps the model puts a name in front of all its weights. The file has the names behind it where a library
saves the model within.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from chaos.observe.checkpoints.saved_state import SavedState
from chaos.observe.checkpoints.torch.state_names import without_wrappers

_NETWORK = re.compile(r"network\d+\.")
_OPTIMIZER = re.compile(r"optimizer\d*\.")
_FIRST_OPTIMIZER = "optimizer."


def is_of_another_network(name: str) -> bool:
    """Return whether a rank's name is that of a weight or buffer of a network beside its model."""
    return _NETWORK.match(name) is not None


def as_recorded(state: SavedState, theirs: Mapping[str, str]) -> SavedState:
    """Return a state by the names that a rank has recorded, where it has several networks, or a model in a wrapper.

    A value of the file that goes by the name of another value in the rank is left out. ``theirs`` are best the digests
    at the save: a rank that goes on may hold another network's values.
    """
    groups = _groups(theirs)
    if groups.keys() <= {"", _FIRST_OPTIMIZER}:
        within = _within_wrapper(groups.get("", {}), state.digests)
        names = {name: name for name in state.digests if name in theirs} | within if within else {}
    else:
        names = _matched(groups, state.digests, theirs)
        _add_equal(names, state.digests, theirs)
    if all(name == held for held, name in names.items()):
        return state

    def renamed(name: str) -> str | None:
        return names.get(name, None if name in theirs else name)

    return replace(
        state,
        digests={new: digest for name, digest in state.digests.items() if (new := renamed(name)) is not None},
        infinite=tuple(new for name in state.infinite if (new := renamed(name)) is not None),
        shards={new: parts for name, parts in state.shards.items() if (new := renamed(name)) is not None},
    )


def _groups(theirs: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the rank's names by the network or optimizer that they begin with, each by the rest of it."""
    groups: dict[str, dict[str, str]] = {}
    for name in theirs:
        match = _NETWORK.match(name) or _OPTIMIZER.match(name)
        prefix = match[0] if match else ""
        groups.setdefault(prefix, {})[without_wrappers(name[len(prefix) :])] = name
    return groups


def _within_wrapper(names: Mapping[str, str], digests: Mapping[str, str]) -> dict[str, str]:
    """Return the rank's name of each weight of a file that has all of them without the parts that all begin with."""
    parts = {tuple(rest.split(".")): name for rest, name in names.items()}
    held = {without_wrappers(name): name for name in digests}
    if not held.keys().isdisjoint(names):
        return {}
    for depth in range(1, min(map(len, parts), default=0)):
        if len({path[:depth] for path in parts}) > 1:
            break
        within = {".".join(path[depth:]): name for path, name in parts.items()}
        if within.keys() <= held.keys():
            return {held[rest]: name for rest, name in within.items()}
    return {}


def _matched(
    groups: Mapping[str, Mapping[str, str]], digests: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Return the rank's name of each value of the file that has one, by the names behind the keys."""
    by_pair: dict[tuple[str, str], dict[str, str]] = {}
    for held in digests:
        for key, rest in _splits(held):
            for prefix, names in groups.items():
                if rest in names and bool(_OPTIMIZER.match(prefix)) == bool(_OPTIMIZER.match(key)):
                    by_pair.setdefault((prefix, key), {})[held] = names[rest]
    equal = Counter(
        {pair: sum(digests[held] == theirs[name] for held, name in both.items()) for pair, both in by_pair.items()}
    )
    taken: dict[str, str] = {}
    done: set[str] = set()
    for prefix, key in sorted(by_pair, key=lambda pair: (-len(by_pair[pair]), -equal[pair], pair[0] != pair[1], pair)):
        both = by_pair[prefix, key]
        if prefix not in done and taken.keys().isdisjoint(both):
            taken.update(both)
            done.add(prefix)
    return taken


def _splits(held: str) -> Iterator[tuple[str, str]]:
    """Yield each way to cut a name of the file into a key and the name of a value."""
    if match := _OPTIMIZER.match(held):
        yield match[0], held[match.end() :]
        return
    parts = without_wrappers(held).split(".")
    for place in range(len(parts)):
        yield ".".join([*parts[:place], ""]) if place else "", ".".join(parts[place:])


def _add_equal(names: dict[str, str], digests: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Add the rank's names that are left, each with a value of the file that is left and equal."""
    left: dict[str, list[str]] = {}
    for held, digest in digests.items():
        if held not in names:
            left.setdefault(digest, []).append(held)
    given = set(names.values())
    for name, digest in theirs.items():
        if name not in given and (equal := left.get(digest)):
            names[equal.pop(0)] = name
