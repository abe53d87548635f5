"""Part of check ``mechanism``: the checkpoint that all ranks go on from when all were restarted, and the lost steps."""

from __future__ import annotations

from chaos.base.rank_sets import named
from chaos.evidence.background import is_finished
from chaos.evidence.checkpoints.damage import as_saved
from chaos.evidence.checkpoints.saved import UNSEEN, sees_saves
from chaos.evidence.facts import TRAIN, places, ranks_text, step_of, text_list
from chaos.evidence.replica_loads import loaded_by_replica
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case


def judge_checkpoint(case: Case, new: dict[int, Event]) -> None:
    """Judge that the last finished periodic checkpoint is the plan's, and that every rank has read one if any is."""
    step, damaged = case.window.step, max(case.recovery.damaged.values(), default=None)
    expected = f"the last finished periodic checkpoint holds step {step}" if step else "no periodic checkpoint is there"
    if damaged is not None:
        # Check ``resume`` says which one a rank went on from.
        expected = f"the last finished periodic checkpoint, of step {damaged}, is damaged, and every rank reads one"
    restart = min(event.mono for event in new.values())
    finished = [
        event
        for event in case.history.select("checkpoint.end", attempt=TRAIN, kind="periodic")
        if isinstance(event.data.get("step"), int) and is_finished(case.history, event, restart)
    ]
    newest = max((step_of(event) for event in finished), default=0)
    last = step if damaged is None else damaged
    if last and not sees_saves(case.history):
        case.collector.unknown(expected, UNSEEN, case.line, data=about(step=last))
    elif newest != last:
        where = places(event for event in finished if step_of(event) == newest)
        text = f"step {newest}" if newest else "none was finished"
        case.collector.fail(
            expected,
            text,
            case.line,
            *where[:1],
            data=about(step=last, quantity="step", expected=last, seen=newest),
        )
    loaded: dict[int, int] = {}
    if case.recovery.reads_checkpoint:
        saved = {str(event.data.get("path")): step_of(event) for event in finished}
        loads = [event for name in ("load.begin", "load.end") for event in case.history.select(name, attempt=TRAIN)]
        by_replica = loaded_by_replica(case.plan, case.window.of(loads))
        for rank in sorted(set(range(case.plan.layout.ranks)) - set(by_replica)):
            _judge_read(case, rank, step, saved, expected)
    observation = "they do" if damaged else "it does" if step else "none is"
    observation += f"; {named(loaded)} read none, and got the state from a rank of the replica group" if loaded else ""
    case.collector.settle(expected, observation, case.line)


def _judge_read(case: Case, rank: int, step: int, saved: dict[str, int], expected: str) -> None:
    """Judge that the rank has read a file that was last saved after the planned step, or the one that is damaged.

    It may have read others, too.

    ``saved`` holds the step of each finished periodic checkpoint by its path.
    """
    begun = case.window.of(case.history.select("load.begin", attempt=TRAIN, rank=rank))
    ended = case.window.of(case.history.select("load.end", attempt=TRAIN, rank=rank))
    if not begun or not ended:
        case.collector.unknown(
            expected, f"no load of rank {rank} is recorded after the restart", case.line, data=about(rank)
        )
        return
    paths = [str(event.data.get("path")) for event in begun]
    if case.recovery.damaged:  # under the name of a stale file lies the content of an older one
        paths = [as_saved(case.history, path) for path in paths]
    steps = {saved.get(path) for path in paths}
    if None in steps and step not in steps:
        unknown = next(event for event in begun if str(event.data.get("path")) not in saved)
        observation = f"rank {rank} read {unknown.data.get('path')}, and no save of it is recorded"
        case.collector.unknown(expected, observation, case.line, unknown.source, data=about(rank))
    elif steps.isdisjoint({step, *case.recovery.damaged.values()}):
        read = text_list(sorted(candidate for candidate in steps if candidate is not None))
        observation = f"rank {rank} read no checkpoint of step {step}, but of step {read}"
        case.collector.fail(expected, observation, case.line, *places(begun[:3]), data=about(rank, step=step))


def judge_cost(case: Case, old: dict[int, Event]) -> None:
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
