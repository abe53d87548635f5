"""The plan: everything that should happen, worked out before anything starts.

A plan is data. Checks compare it with the history; nothing here looks at a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.comparison import Comparison
from chaos.plan.parts.equivalence import Equivalence
from chaos.plan.parts.explanation import Explanation
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.fault_tolerance import FaultTolerance
from chaos.plan.parts.identity import Identity
from chaos.plan.parts.known_finding import KnownFinding
from chaos.plan.parts.layout import RankLayout
from chaos.plan.parts.response import Response
from chaos.plan.parts.resume import Resume
from chaos.plan.parts.training import Training


@dataclass(frozen=True)
class Plan:
    """All expectations of one matrix cell, in parts.

    plan.json has no parts: the fields of the parts that every plan has are its keys (chaos/plan/io.py), so no two parts
    have a field of the same name.
    """

    identity: Identity
    layout: RankLayout
    training: Training
    fault_tolerance: FaultTolerance
    faults: tuple[PlannedFault, ...]
    response: Response
    checkpoint: PlannedCheckpoint | None
    resume: Resume
    equivalence: Equivalence
    known_finding: KnownFinding
    explanation: Explanation
    comparison: Comparison | None = None
