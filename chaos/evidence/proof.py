"""The proof of a fault of one kind. Built-in kinds and kinds of other packages provide it in this same form.

A proof is pure: it reads the plan, the history, the files and the evidence of the landing, and never the code that made
the fault. So a run can be judged again where that code is not installed, as long as the proof is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaos.evidence.doubt import Doubt
from chaos.evidence.injection.triggers import Demands, demands
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

if TYPE_CHECKING:
    from chaos.evidence.artifacts import Artifacts

OF_THE_HARNESS = frozenset({"rank", "role", "pid", "barrier"})
"""Fields that the harness adds to the evidence of every kind."""


@dataclass(frozen=True)
class Case:
    """A planned fault at one of its ranks.

    ``injection`` is the harness's record of the act on this rank, ``landing`` the record of the landing on all ranks,
    and ``evidence`` the landing's evidence about this rank.
    """

    plan: Plan
    history: History
    artifacts: Artifacts
    fault: PlannedFault
    landing: Event
    injection: Event
    evidence: dict[str, Any]

    @property
    def demands(self) -> Demands:
        """The demands of the trigger on the place at which the rank is hit."""
        return demands(self.fault.trigger)


@dataclass(frozen=True)
class Proof:
    """The proof of a fault kind.

    ``words`` complete "proven by …" in the report. ``fields`` are the fields of the evidence that the proof needs; a
    fault whose evidence lacks one is not proven, and ``doubts`` is not asked. It yields every other doubt about the
    fault at one rank, with its places: a fault without a doubt is proven.
    """

    words: str
    fields: tuple[str, ...]
    doubts: Callable[[Case], Iterable[Doubt]]

    def __post_init__(self) -> None:
        """Raise ValueError for a proof that would accept any evidence."""
        if not self.words or not self.fields or set(self.fields) <= OF_THE_HARNESS:
            raise ValueError("a proof names in words what proves the fault, and in fields the evidence that it needs")


Part = Callable[[Case], Iterable[Doubt]]
"""A part of a proof: it yields doubts about a fault at one rank."""


def all_of(*parts: Part) -> Part:
    """Return a part that yields the doubts of all parts."""

    def doubts(case: Case) -> Iterator[Doubt]:
        for part in parts:
            yield from part(case)

    return doubts


def lacking_evidence(proof: Proof, evidence: Mapping[str, Any]) -> str | None:
    """Return the lack of the evidence for this proof, in words; None where nothing is missing."""
    proofs = {key: value for key, value in evidence.items() if key not in OF_THE_HARNESS}
    if all(value is None or value in ([], {}, "") for value in proofs.values()):
        return "says nothing about what was done to it"
    missing = [name for name in proof.fields if name not in proofs]
    if not missing:
        return None
    quoted = ", ".join(f'"{name}"' for name in missing)
    return f"lacks the field{'s' if len(missing) > 1 else ''} {quoted}"
