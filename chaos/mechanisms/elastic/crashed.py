"""Part of check ``mechanism``: where torchrun ends the job after a fault, no rank that no fault hit crashes.

torchrun ends the other ranks by SIGTERM and then by SIGKILL, and collectives that lose a rank raise an error. A signal
of the rank's own code, such as SIGSEGV, comes from neither. A restart of all ranks has a stricter rule
(:mod:`chaos.mechanisms.elastic.ends`).
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, exit_status, node_of, signal_number
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "where torchrun ends the job, no rank that no fault hit crashes"

CRASHES = frozenset({4, 5, 7, 8, 11, 31})
"""SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS by Linux's numbers: a run is judged anywhere."""


def judge_crashed(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the last process of each rank. Says nothing of a job that trains to its end, or without torchrun."""
    if reaches_the_end(plan):
        return
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


def _is_of_torchrun(artifacts: Artifacts, end: Event) -> bool:
    """Return whether the launcher of the rank's node has written lines as torchrun does."""
    return bool(artifacts.torchrun_events(TRAIN, node_of(end)))


def _is_closed(artifacts: Artifacts, end: Event) -> bool:
    """Return whether torchrun had told the process to end."""
    lines = artifacts.torchrun_events(TRAIN, node_of(end))
    return any(line.kind == "torchrun.closing" and line.fields.get("worker_pid") == end.pid for line in lines)
