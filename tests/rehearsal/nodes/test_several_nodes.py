"""A job of several nodes, each with a helper: judged as on one host; nothing is left when one or the harness dies."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.rehearsal.kit import SCENARIOS, Chaos, Done, Harness, Once, Run

TWO_NODES = SCENARIOS / "plain-two-nodes.yaml"


@pytest.fixture(scope="module")
def two_nodes(once: Once) -> Done:
    """A run of two nodes that passed, never to be changed."""
    done = once("two-nodes", lambda chaos: chaos.run(TWO_NODES))
    assert done.code == 0, done.errors + done.output
    return done


def helpers(harness: Harness) -> list[psutil.Process]:
    children = psutil.Process(harness.process.pid).children()
    return [child for child in children if any(word.endswith("remote_helper.pyz") for word in child.cmdline())]


def in_training(chaos: Chaos) -> tuple[Harness, Run]:
    """A harness whose ranks have all joined on two nodes."""
    harness = chaos.start_run(TWO_NODES, "--baseline", "none")
    run = harness.run("plain-two-nodes")
    for rank in range(4):
        harness.event(run, "rank.found", rank=rank)
    return harness, run


def test_a_run_of_two_nodes_passes_with_the_clock_of_each_measured(two_nodes: Done) -> None:
    run = two_nodes.run
    clocks = [(event.attempt, event.data["node"]) for event in run.history.select("clock")]
    assert set(clocks) == {("train", 0), ("train", 1), ("resume", 0), ("resume", 1)}
    assert all(abs(event.data["offset"]) <= event.data["error"] for event in run.history.select("clock"))
    found = {event.rank: event.data["node"] for event in run.history.select("rank.found", attempt="train")}
    assert found == {0: 0, 1: 0, 2: 1, 3: 1}
    assert len(run.history.select("launcher.exit", attempt="train")) == 2
    assert run.left() == []


def test_a_killed_helper_is_told_and_nothing_is_left(fresh: Chaos) -> None:
    harness, run = in_training(fresh)
    helpers(harness)[0].kill()
    done = harness.end()
    assert done.code == 2, done.errors
    end = run.history.first("run.end")
    assert end is not None
    assert "its remote helper was lost" in end.data["error"]
    assert run.left() == []


def test_after_a_killed_harness_nothing_is_left_on_any_node(fresh: Chaos) -> None:
    harness, run = in_training(fresh)
    working = helpers(harness)
    assert len(working) == 2
    os.kill(harness.process.pid, signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    psutil.wait_procs(working, timeout=60)
    assert not any(process.is_running() for process in working)
    assert run.left() == []
