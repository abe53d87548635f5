"""Part of check ``mechanism``: RSC killed every rank and started every rank again, and the launcher stayed."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.base.rank_sets import named
from chaos.evidence.background import is_finished
from chaos.evidence.facts import TRAIN, exit_status, places, ranks_text, signal_number, step_of, text_list
from chaos.evidence.replica_loads import loaded_by_replica
from chaos.evidence.statement_data import about
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.order import UNDECIDED, suspicious
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.rsc.phases import phase_ends, started_again
from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault

SIGKILL = 9
HANDLERS: tuple[str, ...] = ()
"""RSC has no part in the SDK: it calls no handler."""


def judge(case: Case) -> None:
    """Judge the processes by the launcher's record, which collected their exit statuses, and by the kernel's."""
    collector, expected = case.collector, _expected(case)
    old, new = _processes(case)
    if not new:
        collector.fail(
            expected,
            f"no rank was started again in recovery {case.window.number}",
            case.line,
            data=about(case.window.hit),
        )
        collector.close()
        return
    _judge_launcher(case, new)
    _judge_ends(case, old)
    _judge_order(case, old, new)
    collector.settle(expected, f"{len(new)} processes in the place of {len(old)}", case.line)
    _judge_checkpoint(case, new)
    _judge_cost(case, old)


def _expected(case: Case) -> str:
    return f"RSC kills all ranks and starts all again in recovery {case.window.number}, under the same launcher"


def _processes(case: Case) -> tuple[dict[int, Event], dict[int, Event]]:
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


def _judge_launcher(case: Case, new: dict[int, Event]) -> None:
    """Judge that every new process is a child of the launch's only launcher."""
    collector, expected = case.collector, _expected(case)
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


def _judge_ends(case: Case, old: dict[int, Event]) -> None:
    """Judge that ranks that no fault hit were killed; they had no reason to end by themselves."""
    collector, expected = case.collector, _expected(case)
    # Over a broken link, or where a rank hangs, collectives may give up by themselves, before the agent kills the rank.
    faults = case.window.faults
    gave_up = any(_breaks_link(fault) or fault.effect.hangs for fault in faults)
    for rank in range(case.plan.layout.ranks):
        start = old.get(rank)
        ends = [] if start is None else case.history.select("rank.exit", attempt=TRAIN, rank=rank, pid=start.pid)
        if not ends:
            collector.unknown(
                expected,
                f"how rank {rank}'s process before the restart ended is not recorded",
                case.line,
                data=about(rank),
            )
        elif rank not in case.window.hit and not gave_up and signal_number(ends[0].data.get("signal")) != SIGKILL:
            collector.fail(
                expected, f"rank {rank} was not killed: {exit_status(ends[0])}", ends[0].source, data=about(rank)
            )


def _breaks_link(fault: PlannedFault) -> bool:
    """Return whether the job notices a broken link; within one server no card may use the link."""
    return effect_of(fault.kind).breaks_link and fault.effect.stops_training


def _judge_order(case: Case, old: dict[int, Event], new: dict[int, Event]) -> None:
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


def _judge_checkpoint(case: Case, new: dict[int, Event]) -> None:
    """Judge that the last finished periodic checkpoint is the plan's, and that every rank has read one if any is."""
    step = case.window.step
    expected = f"the last finished periodic checkpoint holds step {step}" if step else "no periodic checkpoint is there"
    restart = min(event.mono for event in new.values())
    finished = [
        event
        for event in case.history.select("checkpoint.end", attempt=TRAIN, kind="periodic")
        if isinstance(event.data.get("step"), int) and is_finished(case.history, event, restart)
    ]
    newest = max((step_of(event) for event in finished), default=0)
    if newest != step:
        where = places(event for event in finished if step_of(event) == newest)
        text = f"step {newest}" if newest else "none was finished"
        case.collector.fail(
            expected, text, case.line, *where[:1], data=about(step=step, quantity="step", expected=step, seen=newest)
        )
    loaded: dict[int, int] = {}
    if case.recovery.reads_checkpoint:
        saved = {str(event.data.get("path")): step_of(event) for event in finished}
        loads = [event for name in ("load.begin", "load.end") for event in case.history.select(name, attempt=TRAIN)]
        by_replica = loaded_by_replica(case.plan, case.window.of(loads))
        for rank in sorted(set(range(case.plan.layout.ranks)) - set(by_replica)):
            _judge_read(case, rank, step, saved, expected)
    observation = "it does" if step else "none is"
    observation += f"; {named(loaded)} read none, and got the state from a rank of the replica group" if loaded else ""
    case.collector.settle(expected, observation, case.line)


def _judge_read(case: Case, rank: int, step: int, saved: dict[str, int], expected: str) -> None:
    """Judge that the rank has read a file that was last saved after the planned step. It may have read others, too.

    ``saved`` holds the step of each finished periodic checkpoint by its path.
    """
    begun = case.window.of(case.history.select("load.begin", attempt=TRAIN, rank=rank))
    ended = case.window.of(case.history.select("load.end", attempt=TRAIN, rank=rank))
    if not begun or not ended:
        case.collector.unknown(
            expected, f"no load of rank {rank} is recorded after the restart", case.line, data=about(rank)
        )
        return
    steps = {saved.get(str(event.data.get("path"))) for event in begun}
    if None in steps and step not in steps:
        unknown = next(event for event in begun if str(event.data.get("path")) not in saved)
        observation = f"rank {rank} read {unknown.data.get('path')}, and no save of it is recorded"
        case.collector.unknown(expected, observation, case.line, unknown.source, data=about(rank))
    elif step not in steps:
        read = text_list(sorted(candidate for candidate in steps if candidate is not None))
        observation = f"rank {rank} read no checkpoint of step {step}, but of step {read}"
        case.collector.fail(expected, observation, case.line, *places(begun[:3]), data=about(rank, step=step))


def _judge_cost(case: Case, old: dict[int, Event]) -> None:
    """Judge that as many complete steps were lost as the plan says; one more only on ranks that may be ahead."""
    planned, ahead = case.recovery.trained_again, frozenset(case.recovery.one_more)
    if planned is None:
        return
    most_more = planned + case.recovery.more
    number = f"{planned} steps" + (f", on {ranks_text(sorted(ahead))} perhaps {most_more}," if ahead else "")
    expected = f"{number} are lost: trained before the fault, and once more after it"
    ended = {
        rank: max(ends)
        for rank, event in old.items()
        if (ends := [step_of(end) for end in case.history.select("step.end", attempt=TRAIN, rank=rank, pid=event.pid)])
    }
    lost = {rank: step - case.window.step for rank, step in ended.items()}
    most = max(lost.values(), default=0)
    if not ended and (planned or case.window.step):
        case.collector.unknown(expected, "no step before the fault is recorded", case.line, data=about(sorted(ahead)))
    elif most < planned:
        case.collector.fail(
            expected, f"{most} were", case.line, data=about(lost, quantity="lost steps", expected=planned, seen=most)
        )
    elif over := {rank: steps for rank, steps in lost.items() if steps > (most_more if rank in ahead else planned)}:
        case.collector.fail(
            expected,
            f"{max(over.values())} were, on {ranks_text(sorted(over))}",
            case.line,
            data=about(over, quantity="lost steps", expected=planned, seen=max(over.values())),
        )
    case.collector.settle(expected, f"{most} were" if ahead else "they were", case.line)


def _phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    return phase_ends(launch.plan, launch.history, after)


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=_phase_ends, acted=started_again)
