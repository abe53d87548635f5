"""What a family of faults adds: its kinds, what proves each of them, and the actions that undo them.

A family is one package and one entry point of the group ``chaos.families``, so a further kind of an installed family
needs no reinstall. Code that makes a fault or undoes one is named by where it is (``module:object``) and imported when
it is asked for: whoever judges a run imports no code that acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.evidence.proof import Proof
from chaos.plan.effect import NONE, Effect


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    Args:
        act: where the object is that makes it (:class:`chaos.faults.kind.FaultKind`).
        proof: what proves it.
        effect: what it does to a rank's process, node and card.
        job: keys that the job of its example needs, beside those that its effect needs.
        parameters: parameters of its example, where the kind itself does not say which are required.
        target: the target of its example, where it cannot hit any rank.
    """

    act: str
    proof: Proof
    effect: Effect = NONE
    job: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Undo:
    """An action that undo steps name.

    Args:
        act: where the function is (:data:`chaos.faults.action.UndoAction`).
        after_processes: it changes what living processes of the job use, so it waits for their end.
        after_launches: the next launch of the job is to meet what it takes back, so it waits for the last one.
    """

    act: str
    after_processes: bool = False
    after_launches: bool = False


@dataclass(frozen=True)
class Family:
    """The kinds of a family by the names that scenarios have for them, and its undo actions by those of undo steps."""

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    undo: Mapping[str, Undo] = field(default_factory=dict)
