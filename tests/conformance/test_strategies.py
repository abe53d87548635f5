"""Every subset of MindCluster's strategies: what the agent is offered, what it chooses, and what becomes of the job."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from tests.conformance.conftest import Play, need
from tests.conformance.training import undisturbed

pytestmark = pytest.mark.processes

STRATEGIES = ("retry", "recover-in-place", "recover", "dump", "exit")
SUBSETS = list(chain.from_iterable(combinations(STRATEGIES, count) for count in range(len(STRATEGIES) + 1)))
EVERYDAY = {(), ("retry",), ("recover",), ("dump",), STRATEGIES}
FAULTS = {
    "death": {"rank": 2, "when": "end", "at": 6, "what": "SIGKILL"},
    "uce": {"rank": 2, "when": "begin", "at": 6, "what": "uce"},
}
STEPS = 16


def expected(fault: str, allowed: tuple[str, ...]) -> str:
    """The strategy, as the SDK names it, by the documents: what fits the fault and loses least comes first."""
    if fault == "uce" and "retry" in allowed:
        return "retry"
    if "recover-in-place" in allowed or "recover" in allowed:
        return "recover"
    return "dump" if "dump" in allowed else "exit"


def cases() -> list[object]:
    """Those alone that lead to different ends, and all together, every day; the rest nightly."""
    return [
        pytest.param(
            fault,
            subset,
            marks=() if subset in EVERYDAY else pytest.mark.nightly,
            id=f"{fault}-{'+'.join(subset) or 'none'}",
        )
        for fault in FAULTS
        for subset in SUBSETS
    ]


@pytest.mark.parametrize(("fault", "allowed"), cases())
def test_a_job_ends_as_its_strategies_allow(fault: str, allowed: tuple[str, ...], played: Play) -> None:
    need("standin")
    job = {
        "arf": True,
        "controller": -1,
        "agent": list(allowed),
        "pauses": True,
        "steps": STEPS,
        "acts": [FAULTS[fault]],
    }
    story = played(job, "standin", "fast")
    said = story.dialogue()
    offers = [one[2] for one in said if one[0] == "report_strategies"]
    assert offers == [["exit", "dump", "recover"] if fault == "death" else ["exit", "dump", "retry", "recover"]]
    chosen = expected(fault, allowed)
    assert [one[1] for one in said if one[0] == "change_strategy"] == [chosen]
    ends = {"0", "1", "3", "2" if chosen == "retry" else "2+1"} if chosen in ("retry", "recover") else set()
    assert story.endings() == dict.fromkeys(ends, (undisturbed(4, STEPS), STEPS))
    step = 6 if fault == "death" else 5
    assert story.saved == ({step: [0, 1]} if chosen == "dump" else {})
