"""Part of check ``mechanism``: after the end of a whole node the other torchruns wait for it, and then give up.

A node is lost with its torchrun, so nothing starts its ranks again. Each other torchrun ends its ranks, and joins the
next rendezvous, which lacks a node; after the join timeout it raises RendezvousTimeoutError.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, exit_status, node_of, places
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.elastic.plan import NAME, takes_node
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

FAILED, TIMEOUT = "torchrun.rendezvous_failed", "RendezvousTimeoutError"

EXPECTED = "when a node has ended, the torchrun of each other node starts no rank again, and ends by the join timeout"


def judge_lost_node(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the launchers of the nodes that are left. Says nothing where the plan has no end of a whole node."""
    fault = next((fault for fault in plan.faults if takes_node(fault)), None)
    if fault is None or NAME not in plan.fault_tolerance.protection:
        return
    line = line_of(plan, "mechanism")
    hits = [hit for hit in history.select("fault.injecting", attempt=TRAIN) if hit.data.get("fault") == fault.id]
    if not hits:
        collector.unknown(EXPECTED, f"nothing shows that fault {fault.id} was made", line)
        return
    lost = _lost(history, fault)
    _judge_starts(history, min(hits, key=lambda hit: hit.mono), collector, line)
    ends = {node_of(event): event for event in history.select("launcher.exit", attempt=TRAIN, role="launcher")}
    nodes = {node_of(event) for event in history.select("launcher.found", attempt=TRAIN, role="launcher")}
    left = sorted((nodes | ends.keys()) - lost)
    if not lost or not left:
        collector.unknown(EXPECTED, "the nodes of the launchers and of the ranks are not recorded", line)
    for node in left:
        _judge_end(artifacts, node, ends.get(node), collector, line)
    collector.settle(EXPECTED, f"{TIMEOUT} of {len(left)} torchrun", line, by_log=True)


def _lost(history: History, fault: PlannedFault) -> set[int]:
    """Return the nodes of the ranks that the fault hits."""
    return {node_of(event) for event in history.select("rank.found", attempt=TRAIN) if event.rank in fault.ranks}


def _judge_starts(history: History, hit: Event, collector: Collector, line: str) -> None:
    started = [event for event in history.select("agent.start", attempt=TRAIN) if hit.surely_before(event)]
    if started:
        observation = f"rank {started[0].rank} was started again"
        collector.fail(EXPECTED, observation, line, *places(started[:3]), data=about(started[0].rank, mechanism=NAME))


def _judge_end(artifacts: Artifacts, node: int, end: Event | None, collector: Collector, line: str) -> None:
    """Judge the end of one torchrun: by the exception of the join timeout, which its log holds, with code 1."""
    if end is None:
        collector.unknown(EXPECTED, f"how the torchrun of node {node} ended is not recorded", line)
        return
    if end.data.get("code") != 1:
        collector.fail(EXPECTED, f"the torchrun of node {node} {exit_status(end)}, not code 1", line, end.source)
        return
    raised = [event for event in artifacts.torchrun_events(TRAIN, node) if event.kind == FAILED]
    others = [event for event in raised if event.fields.get("error_text") != TIMEOUT]
    if others:
        observation = f"the torchrun of node {node} ended by {others[0].fields.get('error_text')}"
        collector.fail(EXPECTED, observation, line, others[0].source)
    elif not raised:
        observation = f"the log of the torchrun of node {node} does not say why it ended with code 1"
        collector.unknown(EXPECTED, observation, line, end.source)
