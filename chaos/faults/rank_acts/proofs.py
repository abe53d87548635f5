"""Proofs of each kind of act that a rank does to itself: its own record, and the kernel's word on the process."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.fields import Fields, number
from chaos.evidence.injection.agreement import agrees, ends_as_shown, hangs_as_shown, recorded
from chaos.evidence.injection.conditions import Condition, condition
from chaos.evidence.injection.deaths import ACTING, death, own_act_doubts
from chaos.evidence.proof import Case, Proof, all_of
from chaos.faults.rank_acts.proof import hung_doubts
from chaos.faults.rank_acts.proof_slow import slowed_doubts

_NEAR_SECONDS = 1.0


def acted(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that the rank has ended itself by order."""
    yield from own_act_doubts(case.history, case.fault, case.demands, case.landing, case.injection)


def counted(case: Case) -> Iterator[Doubt]:
    """Yield a doubt unless the kernel counted the end: a SIGKILL for want of memory looks like any other."""
    count, rank = case.evidence.get("oom_kill"), case.injection.rank
    if not (isinstance(count, int) and count > 0):
        yield f"the kernel has not counted that it ended rank {rank} for want of memory", (case.landing.source,)


def _hung(case: Case) -> Iterator[Doubt]:
    yield from hung_doubts(case.history, case.fault, case.demands, case.landing, case.injection)


def _slowed(case: Case) -> Iterator[Doubt]:
    yield from slowed_doubts(case.history, case.fault, case.demands, case.landing, case.injection)


def _is_off(parameters: Fields, evidence: Fields) -> str | None:
    measured, offset = number(evidence, "seen"), number(parameters, "offset")
    if measured is None or offset is None or abs(measured - offset) > _NEAR_SECONDS:
        return f"its clock was off by {evidence.get('seen')} s, not by {parameters.get('offset')}"
    return None


_ENDED = all_of(death, acted, ends_as_shown)

OWN_END = Proof("exit status and the rank's own record that it was about to end", ("signal", "code", "act"), _ENDED)
OOM = Proof(
    "exit status, the kernel's count of processes ended for want of memory in the rank's own group, and the rank's own "
    "record that it was about to end",
    ("signal", "code", "act", "oom_kill"),
    all_of(_ENDED, counted),
)
HANG = Proof(
    "the rank's own record that it begins to wait, and its silence afterwards",
    ("act", "state"),
    all_of(_hung, hangs_as_shown),
)
SLOW = Proof(
    "the rank's own record of how long it waited, and the times of its steps",
    ("act", "factor", "steps"),
    all_of(_slowed, agrees(ACTING, "act", "factor", "steps")),
)
SKEW = condition(
    Condition(_is_off, of_rank=True),
    "how far the rank itself has seen its clock to be off",
    ("act", "seen"),
    recorded(ACTING, "act", "seen"),
)
