"""Two nodes of this host with networks of their own and a rank on each, for tests of faults between them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.kind import Victim
from chaos.heal.heal import heal_run
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.heal.undo_nodes import NodesByUndoSteps
from chaos.machine.job.processes import find_run_processes
from chaos.machine.job.protocol import LaunchSpec
from chaos.platforms.local.networks import LocalNetworks, LocalNetworksPlatform
from chaos.platforms.network.addressing import address_of
from chaos.platforms.network.router import Router
from chaos.platforms.nodes import Node, Site, TellsRules
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory, make_private_directory
from tests.kit.hosts.namespace_hosts import HostInNamespace

MISSING = [result for result in probe(("network-namespaces", "tbf"), Machine()) if not result.ok]
REASON = f"{MISSING and MISSING[0].seen}"

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

    def visit(self, helper: Any, caller: int, pid: int, uid: int) -> Any:
        raise AssertionError("nobody was to call")


def begin(run: RunDirectory) -> tuple[LocalNetworks, NodesJob]:
    """Two nodes with networks of their own behind a router of the run, and a rank on each."""
    private = make_private_directory(run.ledger, run.token)
    python = Path(sys.executable)
    site = Site(run.token, 2, run.path.resolve(), private, (), (), {}, run.ledger, python, Nobody(), SYSTEM_CLOCK)
    nodes = LocalNetworksPlatform().open(site)
    assert [node.address for node in nodes.ready()] == [address_of(0), address_of(1)]
    return nodes, start(run, nodes.ready())


def start(run: RunDirectory, nodes: Sequence[Node]) -> NodesJob:
    """A rank on each of two nodes."""
    specs = []
    for rank in (0, 1):
        ends = (nodes[rank].address, nodes[1 - rank].address, str(PORT), str(run.path / f"count-{rank}"))
        environment = {"PATH": "/usr/bin:/bin", "MS_ROLE": "MS_WORKER", "RANK_ID": str(rank), "CHAOS_NODE": str(rank)}
        argv = (sys.executable, "-c", RANK, *ends)
        specs.append(LaunchSpec(run.token, "train", argv, environment, run.path, run.path / f"log-{rank}"))
    return NodesJob(nodes, specs, SYSTEM_CLOCK)


def on_hosts(job: NodesJob) -> bool:
    """Whether its nodes are hosts that reach each other by themselves."""
    return isinstance(job.nodes[0], HostInNamespace)


def steps(run: RunDirectory) -> int:
    try:
        return int((run.path / "count-0").read_text())
    except FileNotFoundError:
        return 0


def goes_on(run: RunDirectory) -> None:
    """The ranks take some steps more."""
    seen = steps(run)
    wait_for("steps", lambda: steps(run) > seen + 3, seconds=60, clock=SYSTEM_CLOCK)


def victim_of(run: RunDirectory, job: NodesJob, *, rank: int = 1, **parameters: Any) -> Victim:
    ranks = wait_for(
        "ranks",
        lambda: [process for process in job.processes() if process.rank == rank] or None,
        seconds=60,
        clock=SYSTEM_CLOCK,
    )
    record = run.path / "history" / f"train-rank_{rank}-1.jsonl"
    place = job.place(ranks[0].identity)
    return Victim(rank, ranks[0].identity, record, fault="first", ranks=(rank,), parameters=parameters, place=place)


def rules_left(job: NodesJob) -> list[str]:
    """What each node tells afterwards of faults that are still there."""
    return [leftover for node in job.nodes if isinstance(node, TellsRules) for leftover in node.rules_left()]


def undo_all(run: RunDirectory, job: NodesJob | None = None) -> list[str]:
    nodes = NodesByUndoSteps(run.token, run.ledger.read().steps, () if job is None else job.nodes)
    context = UndoContext(run.token, SYSTEM_CLOCK, nodes=nodes)
    own = [step for step in run.ledger.open_steps() if step.fault is not None]
    done = [undo_step(run.ledger, step, UNDO_ACTIONS, context) for step in own]
    assert all(outcome.ok for outcome in done), done
    return [outcome.how for outcome in done]


HARNESS = """
import json, os, signal, sys
from pathlib import Path
from types import SimpleNamespace
from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.ledger import Ledger
from chaos.base.registry import registry
from chaos.store.key import seal_of
from chaos.base.wait import wait_for
from tests.unit.faults.two_nodes import begin, goes_on, victim_of

path, kind = Path(sys.argv[1]), registry("faults").load(sys.argv[3])
ledger = Ledger(path / "undo.jsonl", seal_of(sys.argv[2]))
run = SimpleNamespace(path=path, token=sys.argv[2], ledger=ledger)
nodes, job = begin(run)
goes_on(run)
victim = victim_of(run, job, rank=int(sys.argv[4]), **json.loads(sys.argv[5]))
for step in kind.undo_steps("first", [victim]):
    run.ledger.record(step)
kind.inject(job, victim)
print(wait_for("evidence", lambda: kind.evidence(job, victim), seconds=60, clock=SYSTEM_CLOCK), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def heals_after_sigkill(run: RunDirectory, kind: str, *, rank: int = 1, **parameters: Any) -> tuple[str, list[str]]:
    """The harness that makes the fault is killed; what comes after puts all back.

    Returns what was seen as evidence, and what was done afterwards.
    """
    (run.path / "history").mkdir(exist_ok=True)
    run.lock.release()
    entries = (str(run.path), run.token, kind, str(rank), json.dumps(parameters))
    killed = subprocess.run([sys.executable, "-c", HARNESS, *entries], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    router = Router.recorded(run.path)
    assert router is not None
    wait_for("end", lambda: not router.is_there, seconds=60, clock=SYSTEM_CLOCK)
    report = heal_run(run.path)
    assert report.outcome == "healed", report
    assert find_run_processes(run.token) == []
    return killed.stdout, [one for one in report.done if "the network of the run has gone with its harness" in one]
