"""Part of check ``history``: the witnesses of how a process ended agree.

The launcher collects the exit statuses of its ranks, and the harness records them, from the launcher or the kernel.
"""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import exit_status, signal_number
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History

EXPECTED = "launcher and harness record one end of each process of a rank"


def judge_ends(history: History, collector: Collector) -> None:
    """Judge the ends that both have recorded, by rank and PID. Says nothing where they agree."""
    for end in history.select("rank.exit"):
        if _is_double(end):
            text = f"rank {end.rank}'s process {end.pid} {_status(end)}: a process cannot end by both"
            collector.unknown(EXPECTED, text, end.source, data=about(end.rank, pids=end.pid))
    for child in history.select("child.exit"):
        rank, pid = child.data.get("child_rank"), child.data.get("child_pid")
        if not isinstance(rank, int) or not isinstance(pid, int):
            continue
        known = [event for name in ("rank.exit", "rank.found") for event in history.select(name, rank=rank, pid=pid)]
        _judge(child, rank, pid, known, collector)
    collector.close()


def _judge(child: Event, rank: int, pid: int, known: list[Event], collector: Collector) -> None:
    """Compare the launcher's record of an end with the harness's records of the same process.

    A PID may be given again, so the start time says which process is meant.
    """
    began, data = child.data.get("start_time"), about(rank, pids=pid)
    if _is_double(child):
        text = f"by the launcher process {pid} of rank {rank} {_status(child)}: a process cannot end by both"
        collector.unknown(EXPECTED, text, child.source, data=data)
        return
    same = [event for event in known if began is None or event.data.get("start_time") in (None, began)]
    if known and not same:
        text = f"process {pid} of rank {rank} has another start time by the launcher than by the harness"
        collector.unknown(EXPECTED, text, child.source, known[0].source, data=data)
    for end in same:
        if end.event == "rank.exit" and _known(end) and _known(child) and _how(end) != _how(child):
            text = f"process {pid} of rank {rank}: {_status(child)} by the launcher, {_status(end)} by the harness"
            collector.unknown(EXPECTED, text, child.source, end.source, data=data)


def _how(end: Event) -> tuple[int | None, object]:
    return signal_number(end.data.get("signal")), end.data.get("code")


def _known(end: Event) -> bool:
    return _how(end) != (None, None)


def _is_double(end: Event) -> bool:
    return None not in _how(end)


def _status(end: Event) -> str:
    return f"{exit_status(end)} and exit code {end.data.get('code')}" if _is_double(end) else exit_status(end)
