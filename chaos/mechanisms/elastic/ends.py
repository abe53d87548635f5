"""Part of check ``mechanism``: how the ranks that no fault hit ended when torchrun restarted all."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, exit_status, node_of, signal_number
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.elastic.plan import SHUTDOWN

_SIGABRT, _SIGKILL, _SIGTERM = 6, 9, 15

_SLACK = 0.5
"""Seconds by which the harness may notice the end of one rank later than that of another."""

EXPECTED = (
    "a rank that no fault hit ends by torchrun's SIGTERM, by an error of its own, or by SIGKILL "
    f"{SHUTDOWN:g} s after the SIGTERM"
)


def judge_ends(case: Case, old: dict[int, Event]) -> None:
    """Judge the ends of the processes before the restart. How the ranks that a fault hit ended is the fault's proof."""
    ends = {rank: end for rank, event in old.items() if (end := _end(case, rank, event)) is not None}
    first = min((event.mono for event in ends.values()), default=0)
    for rank in sorted(set(range(case.plan.layout.ranks)) - ends.keys()):
        observation = f"how rank {rank}'s process before the restart ended is not recorded"
        case.collector.unknown(EXPECTED, observation, case.line, data=about(rank))
    healthy = {rank: end for rank, end in ends.items() if rank not in case.window.hit}
    by_log = [_judge(case, rank, end, (end.mono - first) / 1e9) for rank, end in healthy.items()]
    case.collector.settle(EXPECTED, _counted(healthy), case.line, by_log=any(by_log))


def _end(case: Case, rank: int, start: Event) -> Event | None:
    ends = case.history.select("rank.exit", attempt=TRAIN, rank=rank, pid=start.pid)
    return ends[0] if ends else None


def _judge(case: Case, rank: int, end: Event, seconds: float) -> bool:
    """Judge one end, so many seconds after the first end of a rank, which torchrun's SIGTERM cannot precede.

    Returns whether a line of torchrun's log alone shows that the end is right.
    """
    collector, signal = case.collector, signal_number(end.data.get("signal"))
    how, closed = f"rank {rank}: {exit_status(end)}", _says(case, end, "torchrun.closing")
    if signal == _SIGTERM or (signal == _SIGKILL and seconds >= SHUTDOWN - _SLACK):
        return False
    if signal == _SIGKILL and _says(case, end, "torchrun.killing"):
        return True  # by TORCH_ELASTIC_SHUTDOWN_TIMEOUT it may come sooner
    if signal == _SIGKILL:
        text = f"{how}, {seconds:.1f} s after the first end of a rank: torchrun had not yet come to that"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    elif signal is None and end.data.get("code") == 0 and not closed:
        text = f"{how}, as if it had trained to the end"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    elif signal in (None, _SIGABRT) and _raised(case, rank, end):
        return False  # a watchdog of the collectives may abort the process behind it
    elif closed and signal is None:
        return True  # a handler of the script's own may catch SIGTERM
    elif signal in (None, _SIGABRT):
        text = f"{how}, and no error of it is recorded"
        collector.unknown(EXPECTED, text, end.source, data=about(rank))
    elif closed:
        text = f"{how} after torchrun's SIGTERM, and nothing shows why"
        collector.unknown(EXPECTED, text, end.source, data=about(rank))
    else:
        text = f"{how}, which neither torchrun nor an error of its own does"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    return False


def _raised(case: Case, rank: int, end: Event) -> bool:
    """Return whether an error that nothing caught is recorded of the process."""
    return bool(case.history.select("error.uncaught", attempt=TRAIN, rank=rank, pid=end.pid))


def _says(case: Case, end: Event, kind: str) -> bool:
    """Return whether torchrun's log has a line of this kind about the process."""
    return any(
        event.kind == kind and event.fields.get("worker_pid") == end.pid
        for event in case.artifacts.torchrun_events(TRAIN, node_of(end))
    )


def _counted(ends: dict[int, Event]) -> str:
    """Return in words how these ranks ended."""
    hows = [exit_status(end) for _, end in sorted(ends.items())]
    return ", ".join(f"{hows.count(how)} {how}" for how in dict.fromkeys(hows)) or "a fault hit every rank"
