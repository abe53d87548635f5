"""Faults of the network between nodes that have networks of their own: they land, the traffic stops, and it heals."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.faults import network_rate, partition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.clock import SYSTEM_CLOCK
from chaos.platforms.base import LaunchSpec
from chaos.platforms.find import find_run_processes
from chaos.platforms.local_networks import LocalNetworks, LocalNetworksPlatform
from chaos.platforms.network.router import Router, address_of
from chaos.platforms.nodes import NodesJob, Site, TellsRules
from chaos.run.directory import RunDirectory, make_private_directory
from chaos.run.heal import heal_run
from chaos.run.machine import Machine, probe
from chaos.run.undo import UNDO_ACTIONS, UndoContext, undo_open_steps, undo_step
from chaos.run.wait import wait_for

MISSING = [one for one in probe(("network-namespaces", "tbf"), Machine()) if not one.ok]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING and MISSING[0].seen}")

PORT = 4444
RANK = """
import os, socket, sys, time
here, there, port, counted = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
if here < there:
    caller = socket.create_server((here, port)).accept()[0]
else:
    while True:
        try:
            caller = socket.create_connection((there, port))
            break
        except OSError:
            time.sleep(0.01)
count = 0
while True:
    caller.sendall(b"x")
    assert caller.recv(1) == b"x"
    count += 1
    with open(counted + ".new", "w") as file:
        file.write(str(count))
    os.replace(counted + ".new", counted)
    time.sleep(0.005)
"""
"""A rank that takes each step together with that of the other node, and counts them."""


class Nobody:
    """Hears no agents: these ranks have none."""

    def visit(self, hand: Any, caller: int, pid: int, uid: int) -> Any:
        raise AssertionError("nobody was to call")


def begin(run: RunDirectory) -> tuple[LocalNetworks, NodesJob]:
    """Two nodes with networks of their own, and a rank on each."""
    private = make_private_directory(run.ledger, run.token)
    python = Path(sys.executable)
    site = Site(run.token, 2, run.path.resolve(), private, (), (), {}, run.ledger, python, Nobody(), SYSTEM_CLOCK)
    nodes = LocalNetworksPlatform().open(site)
    assert [node.address for node in nodes.ready()] == [address_of(0), address_of(1)]
    specs = []
    for rank in (0, 1):
        ends = (address_of(rank), address_of(1 - rank), str(PORT), str(run.path / f"count-{rank}"))
        environment = {"PATH": "/usr/bin:/bin", "MS_ROLE": "MS_WORKER", "RANK_ID": str(rank), "CHAOS_NODE": str(rank)}
        argv = (sys.executable, "-c", RANK, *ends)
        specs.append(LaunchSpec(run.token, "train", argv, environment, run.path, run.path / f"log-{rank}"))
    return nodes, NodesJob(nodes.ready(), specs, SYSTEM_CLOCK)


@pytest.fixture
def job(run: RunDirectory) -> Iterator[NodesJob]:
    (run.path / "history").mkdir(exist_ok=True)
    nodes, job = begin(run)
    yield job
    job.stop(0)
    nodes.close()
    undone = undo_open_steps(run.ledger, UNDO_ACTIONS, UndoContext(run.token, SYSTEM_CLOCK))
    assert [one.how for one in undone if not one.ok] == []


def steps(run: RunDirectory) -> int:
    try:
        return int((run.path / "count-0").read_text())
    except FileNotFoundError:
        return 0


def goes_on(run: RunDirectory) -> None:
    """The ranks take some steps more."""
    seen = steps(run)
    wait_for("steps", lambda: steps(run) > seen + 3, seconds=60, clock=SYSTEM_CLOCK)


def victim_of(run: RunDirectory, job: NodesJob, **parameters: Any) -> Victim:
    ranks = wait_for(
        "ranks", lambda: [one for one in job.processes() if one.rank == 1] or None, seconds=60, clock=SYSTEM_CLOCK
    )
    record = run.path / "history" / "train-rank_1-1.jsonl"
    return Victim(1, ranks[0].identity, record, fault="first", ranks=(1,), parameters=parameters)


def rules_left(job: NodesJob) -> list[str]:
    """What each node tells afterwards of faults that are still there."""
    return [one for node in job.nodes if isinstance(node, TellsRules) for one in node.rules_left()]


def undo_all(run: RunDirectory) -> list[str]:
    context = UndoContext(run.token, SYSTEM_CLOCK)
    own = [step for step in run.ledger.open_steps() if step.fault is not None]
    done = [undo_step(run.ledger, step, UNDO_ACTIONS, context) for step in own]
    assert all(one.ok for one in done), done
    return [one.how for one in done]


@pytest.mark.parametrize(
    ("direction", "lost"), [("both", [[1, 0], [0, 1]]), ("out", [[1, 0]]), ("in", [[0, 1]])], ids=["both", "out", "in"]
)
def test_a_partition_stops_the_ranks_until_it_is_undone(
    direction: str, lost: list[list[int]], run: RunDirectory, job: NodesJob
) -> None:
    goes_on(run)
    victim = victim_of(run, job, seconds=1, direction=direction)
    for step in partition.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    partition.KIND.inject(job, victim)
    partition.KIND.inject(job, victim)  # for another rank of the node
    shown = partition.KIND.evidence(job, victim)
    echoes = {"sent": 2, "answered": 0}
    assert shown == {"signal": None, "lost": lost, "ways": len(lost), "connections": 1, "echoes": echoes}
    assert not partition.KIND.ended(job, victim)
    assert rules_left(job) == [f"a rule that cuts node {here} from node {there}" for here, there in sorted(lost)]
    before = steps(run)
    SYSTEM_CLOCK.sleep(0.5)  # time in which it must not go on, by as much as what was on its way
    assert steps(run) <= before + 1
    assert undo_all(run) == [f"removed {len(lost)} rules and 0 limits from the run's network"]
    assert rules_left(job) == []
    assert partition.KIND.ended(job, victim)
    goes_on(run)
    assert all(job.state(one.identity) == "alive" for one in job.processes())


def test_a_rate_is_shown_by_what_was_sent_at_it(run: RunDirectory, job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, job, kbit=256)
    for step in network_rate.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    network_rate.KIND.inject(job, victim)
    shown = wait_for("evidence", lambda: network_rate.KIND.evidence(job, victim), seconds=60, clock=SYSTEM_CLOCK)
    assert shown["kbit"] == 256 and shown["bytes"] > 0
    goes_on(run)
    assert undo_all(run) == ["removed 0 rules and 1 limits from the run's network"]
    assert network_rate.KIND.ended(job, victim)


def test_without_a_connection_there_is_nothing_to_cut(run: RunDirectory, job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, job, seconds=1)
    everyone = Victim(1, victim.identity, victim.record, fault="first", ranks=(0, 1), parameters=victim.parameters)
    with pytest.raises(FaultMissed, match="are on one side of any network"):
        partition.KIND.inject(job, everyone)
    job.signal(next(one.identity for one in job.processes() if one.rank == 0), signal.SIGKILL)
    job.signal(victim.identity, signal.SIGKILL)
    wait_for("end", lambda: job.state(victim.identity) in ("gone", "zombie"), seconds=60, clock=SYSTEM_CLOCK)
    with pytest.raises(FaultMissed, match="rank 1 has ended"):
        partition.KIND.evidence(job, victim)


HARNESS = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace
from chaos.faults import partition
from chaos.history.ledger import Ledger
from tests.unit.faults.test_network_between_nodes import begin, goes_on, victim_of

path = Path(sys.argv[1])
run = SimpleNamespace(path=path, token=sys.argv[2], ledger=Ledger(path / "undo.jsonl"))
nodes, job = begin(run)
goes_on(run)
victim = victim_of(run, job, seconds=1)
for step in partition.KIND.undo_steps("first", [victim]):
    run.ledger.record(step)
partition.KIND.inject(job, victim)
print(partition.KIND.evidence(job, victim), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_killed_harness_its_network_is_gone_and_heal_ends_the_ranks(run: RunDirectory) -> None:
    (run.path / "history").mkdir(exist_ok=True)
    run.lock.release()
    killed = subprocess.run([sys.executable, "-c", HARNESS, str(run.path), run.token], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "'connections': 1" in killed.stdout
    router = Router.recorded(run.path)
    assert router is not None
    wait_for("end", lambda: not router.is_there, seconds=60, clock=SYSTEM_CLOCK)
    report = heal_run(run.path)
    assert report.outcome == "healed", report
    assert find_run_processes(run.token) == []
    assert any("the network of the run has gone with its harness" in one for one in report.done), report.done
