"""Part of check ``mechanism``: each rank's process before a restart of all ranks and after it, and their launcher."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, places
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.order import UNDECIDED, suspicious


def old_and_new(case: Case) -> tuple[dict[int, Event], dict[int, Event]]:
    """Return the last process of each rank before the fault, and the first one after it."""
    old: dict[int, Event] = {}
    new: dict[int, Event] = {}
    for event in case.history.select("rank.found", attempt=TRAIN):
        if event.rank is None:
            continue
        if event.mono < case.window.begin:
            old[event.rank] = event
        elif case.window.holds(event):
            new.setdefault(event.rank, event)
    return old, new


def judge_launcher(case: Case, new: dict[int, Event], expected: str) -> None:
    """Judge that every new process is a child of the launch's only launcher."""
    collector = case.collector
    launchers = {event.pid: event for event in case.history.select("launcher.found", attempt=TRAIN, role="launcher")}
    if not launchers:
        collector.unknown(expected, "the launcher was not identified", case.line)
        return
    first, *others = launchers.values()
    if others:
        collector.fail(
            expected,
            f"the launcher was replaced: processes {sorted(map(str, launchers))}",
            *places(others),
            data=about(pids=(event.pid for event in others)),
        )
    for rank, event in new.items():
        parent = event.data.get("ppid")
        if parent is None:
            collector.unknown(
                expected, f"the parent of rank {rank}'s new process was not recorded", event.source, data=about(rank)
            )
        elif parent != first.pid:
            observation = (
                f"rank {rank}'s new process {event.pid} is a child of process {parent}, not of launcher {first.pid}"
            )
            collector.fail(expected, observation, event.source, first.source, data=about(rank, pids=event.pid))


def judge_order(case: Case, old: dict[int, Event], new: dict[int, Event]) -> None:
    """Judge that no rank is started before all have ended: a late old rank would meet the new ones."""
    expected = "all ranks have ended before one is started again"
    pids = {(rank, event.pid) for rank, event in old.items()}  # nodes may have PIDs of their own
    ends = case.history.select("child.exit", attempt=TRAIN)
    ended = [event for event in ends if (event.data.get("child_rank"), event.data.get("child_pid")) in pids]
    begun = case.window.of(case.history.select("agent.start", attempt=TRAIN))
    starts = [event for event in begun if (event.rank, event.pid) not in pids]
    if len(ended) < len(pids) or not starts:
        observation = f"the launcher reported {len(ended)} of {len(pids)} ends, {len(starts)} starts are recorded"
        case.collector.unknown(expected, observation, case.line)
    else:
        pair = suspicious(starts, ended)
        if pair is not None and pair[2]:
            first, last, _ = pair
            observation = f"rank {first.rank} was started before rank {last.data.get('child_rank')} had ended"
            case.collector.fail(expected, observation, first.source, last.source, data=about(first.rank))
        elif pair is not None:
            first, last, _ = pair
            observation = (
                f"whether rank {last.data.get('child_rank')} had ended when rank {first.rank} was started{UNDECIDED}"
            )
            case.collector.unknown(
                expected, observation, first.source, last.source, data=about(last.data.get("child_rank"))
            )
    case.collector.settle(expected, "they had", case.line)
