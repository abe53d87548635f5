"""Kinds that the agent makes inside a rank: who is told, what proves it, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.agent.record import Record
from chaos.base.registry import registry
from chaos.faults.device_errors import hcce, link
from chaos.faults.in_rank import InRank
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.rank_acts import clock_skew, data_stall, exit, oom, slow_rank
from chaos.faults.values import flip_bit, spike
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from tests.kit.own_record import own_record

TOLD: list[tuple[FaultKind, dict[str, Any], dict[str, Any]]] = [
    (clock_skew.KIND, {"offset": -3.0}, {"message": "act", "act": "clock-skew", "offset": -3.0}),
    (data_stall.KIND, {"seconds": 2.0}, {"message": "act", "act": "data-stall", "seconds": 2.0}),
    (exit.KIND, {"code": 7}, {"message": "act", "act": "exit", "code": 7}),
    (flip_bit.KIND, {"where": "weight", "bit": 3}, {"message": "alter", "what": "weight", "bit": 3}),
    (hcce.KIND, {}, {"message": "raise", "text": hcce.KIND.text}),
    (link.KIND, {}, {"message": "device", "action": "link.down"}),
    (slow_rank.KIND, {"factor": 2.0}, {"message": "slow", "factor": 2.0, "steps": 1}),
    (spike.KIND, {"norm": 7.5}, {"message": "alter", "repeat": 0, "norm": 7.5}),
]
"""Kinds with parameters of a scenario, and what the agent is told then."""

PROOFS: list[tuple[FaultKind, str, dict[str, Any]]] = [
    (clock_skew.KIND, "fault.acting", {"act": "clock-skew", "seen": -3.0}),
    (flip_bit.KIND, "fault.altered", {"before": 1.0, "after": 2.0}),
    (hcce.KIND, "fault.raised", {"text": hcce.KIND.text}),
    (link.KIND, "fault.device", {"action": "link.down"}),
    (slow_rank.KIND, "fault.acting", {"act": "slow-rank", "factor": 2.0, "steps": 1}),
    (spike.KIND, "fault.scaled", {"factor": 9.5, "norm": 7.5}),
]
"""Kinds whose only evidence is what the rank records itself, with that record."""

OTHERS = [
    (clock_skew.KIND, "fault.acting", {"act": "hang"}),
    (hcce.KIND, "fault.raised", {"text": "another error"}),
    (link.KIND, "fault.device", {"action": "link.up"}),
]
"""Records of another act than the one that was ordered."""


class Fake:
    """A job whose process is in ``state``; ``asked`` is called whenever somebody asks for it."""

    def __init__(self, state: str, asked: Callable[[], None] = lambda: None) -> None:
        self._state, self._asked = state, asked

    def state(self, identity: ProcessIdentity) -> str:
        self._asked()
        return self._state


def job(state: str, asked: Callable[[], None] = lambda: None) -> Job:
    return cast(Job, Fake(state, asked))


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with own_record(tmp_path, run="run", rank=1) as record:
        yield record


@pytest.fixture
def victim(record: Record, tmp_path: Path) -> Victim:
    return Victim(1, ProcessIdentity(1, 1, "boot"), next(tmp_path.glob("train-rank_1-*.jsonl")), fault="this")


def named(case: Any) -> str:
    return str(getattr(case, "name", ""))


@pytest.mark.parametrize(("kind", "parameters", "told"), TOLD, ids=named)
def test_the_agent_is_told_what_the_scenario_says(
    kind: FaultKind, parameters: dict[str, Any], told: dict[str, Any], victim: Victim
) -> None:
    heard: list[dict[str, Any]] = []
    kind.inject(job("running"), replace(victim, answer=heard.append, parameters=parameters))
    assert heard == [told]


@pytest.mark.parametrize("kind", [kind for kind, *_ in TOLD] + [oom.KIND], ids=named)
def test_an_agent_that_does_not_hold_its_rank_cannot_be_told(kind: FaultKind, victim: Victim) -> None:
    held = replace(victim, parameters={"offset": 1.0, "factor": 2.0})
    with pytest.raises(FaultMissed, match=f"rank 1 is not held at a barrier: {kind.name} needs a trigger"):
        kind.inject(job("running"), held)


@pytest.mark.parametrize(("kind", "event", "facts"), PROOFS, ids=named)
def test_the_record_of_this_very_fault_is_the_proof(
    kind: FaultKind, event: str, facts: dict[str, Any], victim: Victim, record: Record
) -> None:
    assert kind.evidence(job("running"), victim) is None
    record.write(event, fault="another", step=3, **facts)
    assert kind.evidence(job("running"), victim) is None
    record.write(event, fault="this", step=5, **facts)
    assert kind.evidence(job("running"), victim) is not None
    assert kind.evidence(job("gone"), victim) is not None


@pytest.mark.parametrize(("kind", "event", "facts"), OTHERS, ids=named)
def test_the_record_of_another_act_is_no_proof(
    kind: FaultKind, event: str, facts: dict[str, Any], victim: Victim, record: Record
) -> None:
    record.write(event, fault="this", step=5, **facts)
    assert kind.evidence(job("running"), victim) is None
    with pytest.raises(FaultMissed, match="rank 1 has ended and has not recorded that"):
        kind.evidence(job("gone"), victim)


@pytest.mark.parametrize("state", ["gone", "zombie"])
@pytest.mark.parametrize("kind", [kind for kind, *_ in PROOFS], ids=named)
def test_a_rank_that_ended_without_a_record_was_not_hit(kind: FaultKind, state: str, victim: Victim) -> None:
    with pytest.raises(FaultMissed, match="rank 1 has ended and has not recorded that"):
        kind.evidence(job(state), victim)


@pytest.mark.parametrize(("kind", "event", "facts"), PROOFS, ids=named)
def test_what_a_rank_records_while_it_ends_counts(
    kind: FaultKind, event: str, facts: dict[str, Any], victim: Victim, record: Record
) -> None:
    ends = job("gone", lambda: record.write(event, fault="this", step=5, **facts))
    assert kind.evidence(ends, victim) is not None


def test_nothing_of_it_has_to_be_put_back() -> None:
    kinds = [kind for kind in map(registry("faults").load, registry("faults").names()) if isinstance(kind, InRank)]
    assert {kind.name for kind, *_ in TOLD} < {kind.name for kind in kinds}
    assert [kind.name for kind in kinds if kind is not oom.KIND and kind.undo_steps("this", []) != []] == []
