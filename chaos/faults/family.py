"""A family of faults: its kinds, their proofs, the actions that undo them, its plan rules.

A family is one package and one entry point of the group ``chaos.families``, so a further kind of an installed family
needs no reinstall. Code that makes a fault or undoes one is named by its place (``module:object``) and imported when it
is asked for: the judging of a run imports no code that acts. So is the proof of a fault: the start of a run judges
nothing yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chaos.plan.effect import NONE, Effect
from chaos.plan.job_effect import JobEffect

if TYPE_CHECKING:
    from chaos.evidence.proof import Proof


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    Args:
        act: where the object is that makes it (:class:`chaos.faults.kind.FaultKind`).
        proof: where the proof is (:class:`chaos.evidence.proof.Proof`), or the proof itself.
        effect: what it does to a rank's process, node and card.
        job: keys that the job of its example needs, beside those that its effect needs.
        parameters: parameters of its example, where the kind itself does not say which are required.
        target: the target of its example, where it cannot hit any rank.
    """

    act: str
    proof: str | Proof
    effect: Effect = NONE
    job: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Attached:
    """The form of an undo action in steps of an attached job, whose ranks do not carry the run's identity.

    Args:
        action: the action that goes by the rank itself.
        by_hand: the command that does the same, with arguments of the step in braces.
    """

    action: str
    by_hand: str


@dataclass(frozen=True)
class Undo:
    """An action that undo steps name.

    Args:
        act: where the function is (:data:`chaos.faults.action.UndoAction`).
        after_processes: it changes what living processes of the job use, so it waits for their end.
        after_launches: the next launch of the job is to meet the change that it undoes, so it waits for the last one.
        attached: the form for a rank of an attached job, where it acts on a process that carries the run's identity.
            Without it the same action serves there: it acts on the run's own things, whoever's ranks they disturb.
    """

    act: str
    after_processes: bool = False
    after_launches: bool = False
    attached: Attached | None = None


@dataclass(frozen=True)
class Family:
    """The members that a family adds.

    Args:
        kinds: its kinds by the names that scenarios have for them.
        undo: its undo actions by the names that undo steps have for them.
        rules: where its rules for the plan are (:class:`chaos.plan.family_rules.Rules`); None where it needs none.
        effects: the effects of its kinds on a job, where they are not built in.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    undo: Mapping[str, Undo] = field(default_factory=dict)
    rules: str | None = None
    effects: Sequence[JobEffect] = ()
