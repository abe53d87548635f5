"""Part of check ``hygiene``: processes of the run leave no dump of their memory and no lock in the job's directories.

A leftover that a fault explains is no dirt: the dump of a process that a fault ends by a dumping signal, and the lock
of a process that did not end in order.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.observe.leftovers import Leftover, find_leftovers
from chaos.plan.model import Plan

EXPECTED = "no process of the run leaves a dump or a lock in the job's directories"

_DUMPING = frozenset({3, 4, 5, 6, 7, 8, 11, 24, 25, 31})
"""Signals whose default is to dump, as Linux numbers them: SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, …"""


def judge_leftovers(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every dump, and every lock that names the process of a rank."""
    if not artifacts.job_dir.is_dir():
        return  # a job that ran elsewhere; its directories are not the run's
    left = artifacts.search(find_leftovers)
    ends = {event.pid: event for event in history.select("rank.exit")}
    dumped = _dumped_by_fault(plan, history)
    for leftover in left:
        name = artifacts.relative(leftover.path)
        if leftover.kind == "core":
            if not _is_explained(leftover, dumped):
                collector.fail(EXPECTED, f"a process has left a memory dump in {name}", name, data=about(file=name))
        elif leftover.pid in ends and ends[leftover.pid].data.get("code") == 0:
            observation = f"{name} holds the id of process {leftover.pid}, which ended normally"
            collector.fail(
                EXPECTED, observation, name, ends[leftover.pid].source, data=about(pids=leftover.pid, file=name)
            )
    collector.settle(EXPECTED, "none does, but by a fault" if left else "none does")


def _is_explained(core: Leftover, dumped: set[int | None]) -> bool:
    return bool(dumped) and (core.pid is None or core.pid in dumped)


def _dumped_by_fault(plan: Plan, history: History) -> set[int | None]:
    """Return the processes that a fault of the plan has ended by a dumping signal."""
    ends = {fault.id: required_end(fault) for fault in plan.faults}
    dumping = {name for name, end in ends.items() if end is not None and end.signal in _DUMPING}
    return {event.pid for event in history.select("fault.injecting") if event.data.get("fault") in dumping}
