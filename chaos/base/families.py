"""Members of the registries that families of faults fill: kinds, acts, proofs, effects, undo actions and plan rules.

Each family is an entry point of the group ``chaos.families``. A family that cannot be imported takes nothing from the
others: its members are missing, and a request for one of them gets the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint
from typing import Any, Protocol

FAMILIES = "chaos.families"


class KindLike(Protocol):
    """The fields of a kind that are read here."""

    @property
    def act(self) -> str: ...

    @property
    def proof(self) -> object: ...


class EffectLike(Protocol):
    """The fields of an effect that are read here."""

    @property
    def name(self) -> str: ...


class FamilyLike(Protocol):
    """The fields of a family that are read here (:class:`chaos.faults.family.Family`)."""

    @property
    def kinds(self) -> Mapping[str, KindLike]: ...

    @property
    def undo(self) -> Mapping[str, object]: ...

    @property
    def rules(self) -> str | None: ...

    @property
    def effects(self) -> Sequence[EffectLike]: ...


@dataclass(frozen=True)
class Member:
    """One member of a registry. It looks like an entry point; ``target`` is the object, or where it is."""

    name: str
    value: str
    dist: Distribution | None
    target: object

    @property
    def module(self) -> str:
        """The module of the object."""
        return self.value.partition(":")[0]

    def load(self) -> Any:
        """Return the object. Raises ImportError or AttributeError where it is not there."""
        if not isinstance(self.target, str):
            return self.target
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


class BrokenFamily(ImportError):
    """A family that cannot be imported, so that it adds nothing; ``dist`` is the package that registers it."""

    def __init__(self, text: str, dist: Distribution | None) -> None:
        super().__init__(text)
        self.dist = dist


_MEMBERS: Mapping[str, Callable[[FamilyLike], Mapping[str, object]]] = {
    "chaos.faults": lambda family: {name: kind.act for name, kind in family.kinds.items()},
    "chaos.kinds": lambda family: family.kinds,
    "chaos.proofs": lambda family: {name: kind.proof for name, kind in family.kinds.items()},
    "chaos.effects": lambda family: {effect.name: effect for effect in family.effects},
    "chaos.undo": lambda family: family.undo,
    "chaos.rules": lambda family: {} if family.rules is None else {family.rules: family.rules},
}
"""Registry → the members that a family adds to it, by name. Plan rules are named by their place."""


def is_filled_by_families(group: str) -> bool:
    """Return whether families add to this registry."""
    return group in _MEMBERS


def members(group: str, points: Iterable[EntryPoint]) -> Iterator[Member | BrokenFamily]:
    """Yield the members that these families add to a registry, and each family that cannot be imported."""
    for point in points:
        try:
            added = _MEMBERS[group](point.load())
        except Exception as error:  # another package's module may do anything when it is imported
            why = f"the family {point.name!r} ({point.value}): {type(error).__name__}: {error}"
            yield BrokenFamily(why, point.dist)
            continue
        for name, target in added.items():
            value = target if isinstance(target, str) else f"{point.value}.{name}"
            yield Member(name, value, point.dist, target)
