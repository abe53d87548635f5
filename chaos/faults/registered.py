"""Fault kinds by their names, each seen to derive from what it has to."""

from __future__ import annotations

from chaos.base import registry as registries
from chaos.faults.behaviours import Aimed, Lasting, Preparing, StillShown
from chaos.faults.kind import FaultKind

_BEHAVIOURS = (Preparing, Lasting, StillShown, Aimed)


def fault_kind(name: str) -> FaultKind:
    """The fault kind of that name. Raises RegistryError where it cannot be loaded, UnknownName where there is none."""
    members = registries.registry("faults")
    kind = members.load(name)
    if not isinstance(kind, FaultKind):
        raise members.misfit(name, "chaos.faults.kind.FaultKind")
    known = frozenset(dir(kind))
    for behaviour in _BEHAVIOURS:
        # What has the methods of a behaviour and does not derive from it would never be asked to do it.
        if behaviour.__abstractmethods__ <= known and not isinstance(kind, behaviour):
            raise members.misfit(name, f"{behaviour.__module__}.{behaviour.__name__}")
    return kind
