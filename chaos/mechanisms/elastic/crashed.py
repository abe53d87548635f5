"""Part of check ``mechanism``: where torchrun ends the job after a fault, no other rank crashes, and torchrun says so.

torchrun ends the other ranks by SIGTERM and then by SIGKILL, and collectives that lose a rank raise an error. A signal
of the rank's own code, such as SIGSEGV, comes from neither. A restart of all ranks has a stricter rule
(:mod:`chaos.mechanisms.elastic.ends`). A scheduler that starts the job again goes by torchrun's own exit status.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, exit_status, node_of, signal_number
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "where torchrun ends the job, no rank that no fault hit crashes"

FAILED = "where torchrun ends the job, it ends with an exit status that shows the failure"

CRASHES = frozenset({4, 5, 7, 8, 11, 31})
"""SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS by Linux's numbers: a run is judged anywhere."""


def judge_crashed(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the last process of each rank. Says nothing of a job that trains to its end, or without torchrun."""
    if reaches_the_end(plan):
        return
    _judge_launchers(plan, history, artifacts, collector)
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    exits = [
        history.last("rank.exit", attempt=TRAIN, rank=rank) for rank in range(plan.layout.ranks) if rank not in hit
    ]
    ends = [end for end in exits if end is not None and _is_of_torchrun(artifacts, end)]
    for end in ends:
        if signal_number(end.data.get("signal")) not in CRASHES:
            continue
        how, where = f"rank {end.rank}: {exit_status(end)}", (line_of(plan, "mechanism"), end.source)
        data = about(end.rank)
        if _is_closed(artifacts, end):
            collector.unknown(EXPECTED, f"{how} after torchrun's SIGTERM, and nothing shows why", *where, data=data)
        else:
            text = f"{how}, which neither torchrun nor an error of a collective does"
            collector.fail(EXPECTED, text, *where, data=data)
    if ends:
        collector.settle(EXPECTED, f"none of {len(ends)} does", line_of(plan, "mechanism"))


def _judge_launchers(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge how each torchrun with a failed rank ended, as far as that is recorded.

    A supervisor of the job's own ends later, and well, and so may a script around torchrun: only a launcher that has
    written torchrun's lines itself counts. A cluster's agent in torchrun's place has a code of its own.
    """
    by_supervisor = any(start.data.get("by") for start in history.select("attempt.start", attempt=RESUME))
    if by_supervisor or plan.fault_tolerance.strategies:
        return
    failed = {node_of(end) for end in history.select("rank.exit", attempt=TRAIN) if end.data.get("code") != 0}
    exits = history.select("launcher.exit", attempt=TRAIN, role="launcher")
    ends = [end for end in exits if node_of(end) in failed and _is_torchrun(artifacts, end)]
    for end in ends:
        if signal_number(end.data.get("signal")) is None and end.data.get("code") == 0:
            where, data = (line_of(plan, "mechanism"), end.source), about(pids=end.pid)
            collector.fail(FAILED, f"torchrun: {exit_status(end)}", *where, data=data)
    if ends:
        collector.settle(FAILED, ", ".join(dict.fromkeys(map(exit_status, ends))), line_of(plan, "mechanism"))


def _is_of_torchrun(artifacts: Artifacts, end: Event) -> bool:
    """Return whether the launcher of the node has written lines as torchrun does."""
    return bool(artifacts.torchrun_events(TRAIN, node_of(end)))


def _is_torchrun(artifacts: Artifacts, end: Event) -> bool:
    """Return whether the ended launcher is torchrun itself: the lines name the process that writes them."""
    return any(line.pid == end.pid for line in artifacts.torchrun_events(TRAIN, node_of(end)))


def _is_closed(artifacts: Artifacts, end: Event) -> bool:
    """Return whether torchrun had told the process to end."""
    lines = artifacts.torchrun_events(TRAIN, node_of(end))
    return any(line.kind == "torchrun.closing" and line.fields.get("worker_pid") == end.pid for line in lines)
