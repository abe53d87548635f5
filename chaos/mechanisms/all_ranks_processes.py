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
    """Judge that every new process is a child of the launch's only launcher on its node."""
    found = _launchers(case)
    if not found:
        case.collector.unknown(expected, "the launcher was not identified", case.line)
        return
    for node, group in _by_node(new).items():
        launchers = {event.pid: event for event in found if event.data.get("node") == node}
        _judge_launchers(case, launchers, group, expected, _on(node))


def _judge_launchers(
    case: Case, launchers: dict[int | None, Event], new: dict[int, Event], expected: str, on: str
) -> None:
    """Judge the launchers of one node, and that they are the parents of its new processes."""
    collector = case.collector
    if not launchers:
        collector.unknown(expected, f"the launcher{on} was not identified", case.line, data=about(sorted(new)))
        return
    first, *others = launchers.values()
    if others:
        collector.fail(
            expected,
            f"the launcher{on} was replaced: processes {sorted(map(str, launchers))}",
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
                f"rank {rank}'s new process {event.pid} is a child of process {parent}, not of launcher {first.pid}{on}"
            )
            collector.fail(expected, observation, event.source, first.source, data=about(rank, pids=event.pid))


def judge_same_launcher(case: Case, old: dict[int, Event], new: dict[int, Event], expected: str) -> None:
    """Judge that the launcher of each node had started the old processes too, and is the one whose end is recorded.

    It is for launchers that start the ranks themselves. Each rank stays on its node.
    """
    launchers: dict[object, Event] = {}
    for event in _launchers(case):
        launchers.setdefault(event.data.get("node"), event)
    for rank, before in old.items():
        launcher, parent = launchers.get(before.data.get("node")), before.data.get("ppid")
        if launcher is not None and parent not in (None, launcher.pid):
            text = f"rank {rank}'s process {before.pid} was a child of process {parent}, not of launcher {launcher.pid}"
            case.collector.fail(
                expected, text, before.source, launcher.source, data=about(rank, pids=(before.pid, launcher.pid))
            )
        after = new.get(rank)
        if after is not None and after.data.get("node") != before.data.get("node"):
            text = f"rank {rank} was{_on(before.data.get('node'))}, and its new process is{_on(after.data.get('node'))}"
            case.collector.fail(expected, text, after.source, before.source, data=about(rank, pids=after.pid))
    for end in case.history.select("launcher.exit", attempt=TRAIN, role="launcher"):
        launcher = launchers.get(end.data.get("node"))
        if launcher is not None and end.pid not in {event.pid for event in _launchers(case)}:
            text = f"the end that is recorded is that of process {end.pid}, and the launcher was process {launcher.pid}"
            case.collector.unknown(expected, text, end.source, launcher.source, data=about(pids=end.pid))


def _launchers(case: Case) -> list[Event]:
    return case.history.select("launcher.found", attempt=TRAIN, role="launcher")


def judge_order(case: Case, old: dict[int, Event], *, on_each_node: bool = False) -> None:
    """Judge that no rank is started before all have ended: a late old rank would meet the new ones.

    ``on_each_node``: the launcher of a node waits for the ranks of its own node.
    """
    groups = list(_by_node(old).values()) if on_each_node else [old]
    expected = f"all ranks{' of a node' if len(groups) > 1 else ''} have ended before one is started again"
    for group in groups:
        _judge_order_of(case, group, expected)
    case.collector.settle(expected, "they had", case.line)


def _judge_order_of(case: Case, old: dict[int, Event], expected: str) -> None:
    pids = {(rank, event.pid) for rank, event in old.items()}  # nodes may have PIDs of their own
    ends = case.history.select("child.exit", attempt=TRAIN)
    ended = [event for event in ends if (event.data.get("child_rank"), event.data.get("child_pid")) in pids]
    begun = case.window.of(case.history.select("agent.start", attempt=TRAIN))
    starts = [event for event in begun if event.rank in old and (event.rank, event.pid) not in pids]
    if len(ended) < len(pids) or not starts:
        observation = f"the launcher reported {len(ended)} of {len(pids)} ends, {len(starts)} starts are recorded"
        case.collector.unknown(expected, observation, case.line)
        return
    pair = suspicious(starts, ended)
    if pair is None:
        return
    first, last, sure = pair
    number = last.data.get("child_rank")
    if sure:
        observation = f"rank {first.rank} was started before rank {number} had ended"
        case.collector.fail(expected, observation, first.source, last.source, data=about(first.rank))
    else:
        observation = f"whether rank {number} had ended when rank {first.rank} was started{UNDECIDED}"
        case.collector.unknown(expected, observation, first.source, last.source, data=about(number))


def _by_node(processes: dict[int, Event]) -> dict[object, dict[int, Event]]:
    """Return the processes of each node; where there is one node, it is None."""
    nodes: dict[object, dict[int, Event]] = {}
    for rank, event in processes.items():
        nodes.setdefault(event.data.get("node"), {})[rank] = event
    return nodes


def _on(node: object) -> str:
    return "" if node is None else f" on node {node}"
