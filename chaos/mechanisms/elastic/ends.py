"""Part of check ``mechanism``: how the ranks that no fault hit ended when torchrun restarted all."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, exit_status, node_of, signal_number
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.elastic.plan import SHUTDOWN
from chaos.mechanisms.elastic.survivor_errors import INTERRUPT, logged_error, recorded_error

_SIGABRT, _SIGKILL, _SIGTERM = 6, 9, 15

_SLACK = 0.5
"""Seconds by which the harness may notice the end of one rank later than that of another."""

EXPECTED = (
    "a rank that no fault hit ends by torchrun's SIGTERM, by an error of a collective, or by SIGKILL "
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

    Returns whether a line of a log alone shows that the end is right.
    """
    collector, signal = case.collector, signal_number(end.data.get("signal"))
    how, closed = f"rank {rank}: {exit_status(end)}", _says(case, end, "torchrun.closing")
    # By TORCH_ELASTIC_SHUTDOWN_TIMEOUT the SIGKILL may come sooner.
    early = signal == _SIGKILL and seconds < SHUTDOWN - _SLACK
    killed = early and _says(case, end, "torchrun.killing")
    if early and not killed:
        text = f"{how}, {seconds:.1f} s after the first end of a rank: torchrun had not yet come to that"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    elif signal is None and end.data.get("code") == 0 and not closed:
        text = f"{how}, as if it had trained to the end"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    elif signal not in (None, _SIGABRT, _SIGKILL, _SIGTERM) and closed:
        text = f"{how} after torchrun's SIGTERM, and nothing shows why"
        collector.unknown(EXPECTED, text, end.source, data=about(rank))
    elif signal not in (None, _SIGABRT, _SIGKILL, _SIGTERM):
        text = f"{how}, which neither torchrun nor an error of a collective does"
        collector.fail(EXPECTED, text, end.source, data=about(rank))
    else:
        by_itself = signal in (None, _SIGABRT)  # a watchdog of the collectives may abort the process behind its error
        return _judge_error(case, rank, end, how, closed=closed, by_itself=by_itself) or killed
    return False


def _judge_error(case: Case, rank: int, end: Event, how: str, *, closed: bool, by_itself: bool) -> bool:
    """Judge the error of a process that ended ``by_itself``, or that torchrun ended behind the error.

    Returns whether a line of a log alone shows that the end is right.
    """
    collector, error = case.collector, recorded_error(case, rank, end)
    if error is None and by_itself and not (closed and end.data.get("code") is not None):
        error = logged_error(case, rank, end)
    if error is None and not by_itself:
        return False
    if error is None and closed and end.data.get("code") is not None:
        return True  # a handler of the script's own may catch SIGTERM
    if error is None:
        collector.unknown(EXPECTED, f"{how}, and no error of it is recorded", end.source, data=about(rank))
        return False
    if error.cause == "collective" or (closed and error.base == INTERRUPT):
        return error.by_log
    text = f"{how}, and its error is {error.text}"
    if error.cause == "program":
        collector.fail(EXPECTED, f"{text}, which no collective raises", end.source, data=about(rank))
    else:
        text = f"{text}: whether a collective raised it is not known"
        collector.unknown(EXPECTED, text, end.source, data=about(rank))
    return False


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
