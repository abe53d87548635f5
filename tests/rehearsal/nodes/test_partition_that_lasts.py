"""A partition by which ranks are lost: who is left saves, who was cut off ends, and a killed harness leaves nothing."""

from __future__ import annotations

import signal

import pytest

from chaos.doctor import Machine, probe
from chaos.history.event import Event
from tests.rehearsal.kit import Chaos, Run, said

LASTS, HEALS = "plain-partition-lasts", "plain-partition-heals"
(NAMESPACES,) = probe(("network-namespaces",), Machine())
pytestmark = pytest.mark.skipif(not NAMESPACES.ok, reason=f"{NAMESPACES.seen}: {NAMESPACES.advice}")


def exits(run: Run) -> dict[int | None, Event]:
    return {event.rank: event for event in run.history.select("rank.exit", attempt="train")}


def test_until_the_launch_has_ended(fresh: Chaos) -> None:
    done = fresh.run("plain-partition-lasts.yaml")
    assert done.code == 0, said(done.json["checks"])
    (ending,) = done.run.history.select("fault.ending")
    ended = exits(done.run)
    assert {rank for rank, event in ended.items() if event.surely_before(ending)} == {0, 1}
    assert len(ending.data["evidence"]) == 2
    assert done.run.left() == []


@pytest.mark.nightly
def test_ranks_that_come_back_find_no_controller_and_end_by_themselves(fresh: Chaos) -> None:
    done = fresh.run(f"{HEALS}.yaml")
    assert done.code == 0, said(done.json["checks"])
    (ending,) = done.run.history.select("fault.ending")
    ended = exits(done.run)
    assert {rank for rank, event in ended.items() if event.surely_before(ending)} == {0, 1}
    assert [(ended[rank].data["signal"], ended[rank].data["code"]) for rank in (2, 3)] == [(None, 1)] * 2
    again = done.run.history.first("attempt.start", attempt="resume")
    assert again is not None
    assert all(event.surely_before(again) for event in ended.values())
    assert done.run.left() == []


@pytest.mark.parametrize("scenario", [LASTS, pytest.param(HEALS, marks=pytest.mark.nightly)])
def test_after_a_killed_harness_heal_ends_who_was_cut_off_and_the_network_is_gone(scenario: str, fresh: Chaos) -> None:
    harness = fresh.start_run(f"{scenario}.yaml", "--baseline", "none")
    run = harness.run(scenario)
    harness.event(run, "fault.landed", kind="partition")
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert run.left() == []
