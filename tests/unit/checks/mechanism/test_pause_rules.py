"""The rules of a pause: same step, long enough, all go on; over the other network where that is planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.evidence.collect import Collector
from chaos.evidence.recovery_windows import Window
from chaos.faults.pause.proof import halts, paused_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.tsp import rule as tsp
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.job_effect import PAUSE
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed
from tests.kit.runs.good_run import a_plan

SECOND = 1_000_000_000
RANKS = 4


@dataclass
class Written:
    """The history of a paused launch: rank R stops after ``steps[R]`` from ``into[R]`` to ``out[R]`` seconds."""

    steps: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(RANKS), 5))
    into: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(RANKS), 1.0))
    out: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(RANKS), 3.5))
    switched: bool = False
    ok: bool = True
    again: tuple[int, ...] = ()

    def history(self) -> History:
        return History(tuple(sorted(self._events(), key=lambda fact: fact.mono)))

    def _events(self) -> Iterator[Event]:
        for rank in range(RANKS):
            yield event("fault.injecting", 0.5, rank, writer="harness", fault="pause")
            yield event("pause.enter", 0.1, rank, step=4)
            yield event("pause.exit", 0.1, rank, step=4)
            if rank not in self.into:
                continue
            yield event("pause.enter", self.into[rank], rank, step=self.steps[rank])
            yield event("handler.enter", self.into[rank] + 0.01, rank, name="stream_sync")
            yield event("handler.exit", self.into[rank] + 0.02, rank, name="stream_sync", ok=True)
            if self.switched:
                yield event("network.joined", 1.5, rank, network="backup")
                yield event("network.switched", 1.6, rank, fault="pause", ok=self.ok)
            if rank in self.out:
                yield event("pause.exit", self.out[rank], rank, step=self.steps[rank])
            if rank in self.again:
                yield event("step.begin", self.out.get(rank, 4.0), rank, step=self.steps[rank] + 1)


def event(what: str, seconds: float, rank: int, /, writer: str = "agent", **data: Any) -> Event:
    at = int(seconds * SECOND)
    return Event(what, at, at, writer, 0, "train", rank, 100 + rank, data, f"history/rank_{rank}:{what}")


class Logs:
    """The SDK's logs: as many pauses as a test says, None for no logs at all."""

    def __init__(self, pauses: int | None) -> None:
        self._pauses = pauses

    def sdk_events(self, attempt: str) -> list[LogEvent]:
        if self._pauses is None:
            return []
        states = ["NORMAL", *["PAUSE"] * self._pauses]
        return [
            LogEvent("ttp.state", 0, fields={"state": state}, file="log", line=at) for at, state in enumerate(states)
        ]


def judged(
    written: Written | None = None,
    *,
    seconds: float = 2,
    switch: bool = False,
    succeeds: bool = True,
    logs: int | None = 1,
    history: History | None = None,
) -> list[tuple[str, str]]:
    """Verdict and text of every finding."""
    parameters = {"seconds": seconds, **({"switch": True} if switch else {})}
    trigger = {"step": 5, "phase": "step.begin"}
    fault = PlannedFault("pause", "pause", tuple(range(RANKS)), trigger, parameters, None, 1, PAUSE)
    recovery = Recovery("TSP", ("pause",), None, succeeds=succeeds)
    plan = changed(a_plan(), ranks=RANKS, faults=(fault,), recoveries=(recovery,), mechanism="TSP")
    tried, last = ((), recovery) if succeeds else ((recovery,), None)
    window = Window(1, tried, last, (fault,), int(0.5 * SECOND), None)
    found = Collector("mechanism")
    facts = history if history is not None else (written or Written()).history()
    tsp.judge(Case(plan, window, recovery, facts, Logs(logs), found))  # type: ignore[arg-type]
    return [(finding.verdict, finding.seen) for finding in found.findings()]


def worst(findings: list[tuple[str, str]]) -> str:
    verdicts = {verdict for verdict, _ in findings}
    return next(verdict for verdict in ("fail", "unknown", "pass") if verdict in verdicts)


def test_a_good_pause_passes() -> None:
    assert judged() == [("pass", "all of them did, after step 5")]


def test_a_rank_that_trains_while_it_is_paused_fails() -> None:
    history = Written().history()
    trained = event("step.begin", 2.0, 1, step=6)
    answer = judged(history=History(tuple(sorted((*history.events, trained), key=lambda fact: fact.mono))))
    assert ("fail", "rank 1 began step 6 while it was paused") in answer


def test_ranks_that_stop_after_different_steps_fail() -> None:
    findings = judged(Written(steps={0: 5, 1: 5, 2: 6, 3: 5}))
    assert ("fail", "they were paused after steps 5, 6") in findings


def test_a_pause_before_it_was_asked_for_fails() -> None:
    assert worst(judged(Written(steps=dict.fromkeys(range(RANKS), 3)))) == "fail"


def test_a_pause_that_is_too_short_for_one_rank_fails() -> None:
    out = dict.fromkeys(range(RANKS), 3.5) | {2: 2.9}
    assert ("fail", "all of them were paused for 1.880 s") in judged(Written(out=out))
    into = dict.fromkeys(range(RANKS), 1.0) | {1: 2.0}
    assert worst(judged(Written(into=into))) == "fail"


def test_a_rank_that_is_not_paused_or_never_goes_on_fails() -> None:
    written = Written()
    del written.into[3]
    assert ("fail", "rank 3 was not paused") in judged(written)
    stuck = Written()
    del stuck.out[1]
    assert ("fail", "rank 1 did not go on") in judged(stuck)


def test_nothing_at_all_fails_where_somebody_listened_and_is_unknown_where_nobody_did() -> None:
    nobody = Written(into={})
    assert judged(nobody, logs=0)[0] == ("fail", "no rank was paused")
    assert judged(nobody, logs=1)[0][0] == "unknown"
    assert worst(judged(history=History(), logs=None)) == "unknown"


def test_the_log_must_tell_of_as_many_pauses() -> None:
    assert ("fail", "2 pauses in its log") in judged(logs=2)
    assert worst(judged(logs=0)) == "unknown"
    assert worst(judged(logs=None)) == "pass"


def test_a_switch_is_seen_in_every_rank_during_the_pause() -> None:
    assert worst(judged(Written(switched=True), switch=True)) == "pass"
    assert ("fail", "rank 0 has recorded no switch") in judged(Written(), switch=True)
    failed = judged(Written(switched=True, ok=False), switch=True)
    assert ("fail", "rank 0 could not switch: no reason given") in failed
    early = judged(Written(switched=True, into=dict.fromkeys(range(RANKS), 1.7)), switch=True, seconds=1)
    assert ("fail", "rank 0 switched while it trained") in early


@pytest.mark.parametrize(("again", "verdict"), [((), "pass"), ((1,), "fail")])
def test_from_a_pause_in_which_a_rank_is_lost_nobody_trains_on(again: tuple[int, ...], verdict: str) -> None:
    assert worst(judged(Written(again=again, out={}), succeeds=False)) == verdict


def proof(history: History, paused: object = 5, landed: float = 2.0) -> list[str]:
    fault = PlannedFault("pause", "pause", (0,), {}, {"seconds": 2}, None, 1, PAUSE)
    landing = event("fault.landed", landed, 0, writer="harness")
    injection = event("fault.injecting", 0.5, 0, writer="harness")
    return [doubt for doubt, _ in paused_doubts(history, fault, landing, {"paused": paused}, injection)]


def test_the_proof_of_a_pause_is_the_ranks_own_record() -> None:
    good = Written().history()
    assert [halt.step for halt in halts(good, 0)] == [5]
    assert proof(good) == []
    assert proof(good, paused=6) == ["rank 0 was paused after step 5; the evidence says 6"]
    assert "no step after which it is paused" in proof(good, paused=None)[0]
    assert proof(good, landed=0.9)[-1] == "the landing is recorded before rank 0 was paused"
    assert proof(good, landed=3.9) == ["rank 0 went on before the landing"]
    assert proof(Written(into={}).history()) == ["rank 0's own history has no pause"]
