"""Fault kinds by their names, each checked for its base classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chaos.base import registry as registries
from chaos.faults.behaviours import Aimed, Lasting, Preparing, StillShown
from chaos.faults.kind import FaultKind

if TYPE_CHECKING:
    from chaos.machine.running.running import JobProcess

_BEHAVIOURS = (Preparing, Lasting, StillShown, Aimed)


def fault_kind(name: str) -> FaultKind:
    """Return the fault kind of that name.

    Raises RegistryError where it cannot be loaded, UnknownName where there is none.
    """
    members = registries.registry("faults")
    kind = members.load(name)
    if (lacks := _lacking_base(kind)) is not None:
        raise members.misfit(name, lacks)
    assert isinstance(kind, FaultKind)
    return kind


def kind_in_running_job(kind: FaultKind) -> FaultKind | None:
    """Return the kind in a job that runs already; None where it cannot be made there.

    Raises as :func:`fault_kind` does.
    """
    return _checked(kind, kind.in_running_job())


def aimed_kind(kind: FaultKind, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
    """Return the kind with its aims besides the ranks; the same kind where it has none.

    Raises as :func:`fault_kind` does, FaultMissed and OSError where there is nothing to hit.
    """
    return _checked(kind, kind.aim_at(ranks, parameters)) or kind if isinstance(kind, Aimed) else kind


def _checked(of: FaultKind, derived: FaultKind | None) -> FaultKind | None:
    if derived is not None and (lacks := _lacking_base(derived)) is not None:
        raise registries.RegistryError(
            f"what the fault kind {of.name!r} is in a running job, {type(derived).__qualname__}, does not derive from "
            f"{lacks}, as it has to (docs/guides/extending.md in the repository)"
        )
    return derived


def _lacking_base(kind: object) -> str | None:
    """Return the class that a fault kind has to derive from and does not; None without one."""
    if not isinstance(kind, FaultKind):
        return "chaos.faults.kind.FaultKind"
    known = frozenset(dir(kind))
    for behaviour in _BEHAVIOURS:
        # A kind with the methods of a behaviour that does not derive from it would never be asked for them.
        if behaviour.__abstractmethods__ <= known and not isinstance(kind, behaviour):
            return f"{behaviour.__module__}.{behaviour.__name__}"
    return None
