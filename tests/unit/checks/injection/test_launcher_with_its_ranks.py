"""A kill that takes the launcher of a node too is proven by the launcher's exit status besides the rank's."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.proof import Case
from chaos.faults.signals.proof import KILL
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from tests.kit.plans import plan_named

FAULT = PlannedFault("it", "kill", (3,), {"step": 7}, {"with": "launcher"}, None, 9, DEATH)
SHOWN = {"pid": 50, "signal": 9}


def event(name: str, mono: int, pid: int, **data: Any) -> Event:
    rank = None if name == "launcher.exit" else 3
    return Event(name, mono, mono, "harness", mono, "train", rank, pid, {"fault": "it", **data}, f"harness:{mono}")


ACT = event("fault.injecting", 10, 77, kind="kill", signal=9)
EXIT = event("rank.exit", 11, 77, signal=9, code=None)
LANDING = event("fault.landed", 12, 77, ranks=[3])
LAUNCHER_EXIT = event("launcher.exit", 20, 50, role="launcher", signal=9, code=None)


def doubts(*events: Event, fault: PlannedFault = FAULT, **evidence: Any) -> list[str]:
    history = History((ACT, EXIT, LANDING, *events), ())
    plan = plan_named("it", ranks=4, faults=(fault,))
    case = Case(plan, history, Artifacts("nowhere", None), fault, LANDING, ACT, evidence)  # type: ignore[arg-type]
    return [text for text, _ in KILL.doubts(case)]


def test_both_exit_statuses_prove_it() -> None:
    assert doubts(LAUNCHER_EXIT, signal=9, launcher=SHOWN) == []


def test_a_kill_of_ranks_alone_asks_for_no_launcher() -> None:
    assert doubts(fault=PlannedFault("it", "kill", (3,), {"step": 7}, {}, None, 9, DEATH), signal=9) == []


@pytest.mark.parametrize(
    ("events", "launcher", "doubt"),
    [
        ([LAUNCHER_EXIT], None, "the launcher on the node of rank 3 is not shown to be ended by SIGKILL"),
        ([LAUNCHER_EXIT], {"pid": 50, "signal": 15}, "is not shown to be ended by SIGKILL"),
        ([], SHOWN, "no exit status of launcher 50 is recorded"),
        ([event("launcher.exit", 20, 50, signal=None, code=1)], SHOWN, "launcher 50 exit code 1, not ended by SIGKILL"),
    ],
)
def test_a_launcher_that_may_live_is_doubted(events: list[Event], launcher: object, doubt: str) -> None:
    (text,) = doubts(*events, signal=9, launcher=launcher)
    assert doubt in text
