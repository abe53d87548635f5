"""Part of check ``checkpoint``: every rank goes on to save its periodic checkpoints, above all after a recovery.

A job that stops saving does not survive the next fault. The steps of its saves are the job's own affair: MindSpore
counts from the beginning of each training, another job from its own beginning. None trains further than the interval.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from chaos.evidence.background import is_background, is_late, written
from chaos.evidence.checkpoints.saved import UNSEEN, sees_saves
from chaos.evidence.collect import Collector
from chaos.evidence.facts import ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

_SAVES = ("checkpoint.begin", "checkpoint.end")
_EVENTS = ("train.begin", "step.begin", "step.end", "checkpoint.end", "train.end")


def judge_saving_goes_on(plan: Plan, history: History, baseline: History | None, collector: Collector) -> None:
    """Judge every process that trains on for as many steps as the interval. Other processes had nothing to save.

    A script that saves before a step, and not after it, saves nothing behind its last one: so it is where the
    fault-free run has ended with the same steps unsaved. Where one rank of each replica group has to save, a rank that
    has never saved, neither here nor in the fault-free run, leaves it to those of its group that have.
    """
    interval = plan.training.checkpoint_interval
    if interval is None:
        return
    who = "rank" if plan.training.every_rank_saves else "replica group"
    expected = f"every {who} saves a periodic checkpoint at least every {interval} steps"
    left_to = {} if plan.training.every_rank_saves else _left_to(plan, history, baseline)
    due: set[int] = set()
    saves = 0
    refused = any(fault.effect.spoils_saves for fault in plan.faults)
    unseen = not sees_saves(history)
    late = any(is_late(event) for run in (history, baseline) if run is not None for event in run.select(_SAVES[0]))
    habits = cache(lambda: _unsaved_ends(baseline, interval))  # a run that saves behind its last step needs no other
    for process in _processes(history):
        kept = [event for event in process if event.event == "checkpoint.end"]
        saves += len(kept)
        if left_to.get(process[0].rank):
            continue
        for last, step, event in _gaps(history, process, interval):
            rank = event.rank
            if event.event == "train.end" and (rank, last, step) in habits():
                continue
            observation = f"rank {rank} has trained up to step {step}, and saved none since step {last}"
            if rank in left_to:
                observation += ", nor has any rank of its replica group"
            if refused:
                collector.unknown(
                    expected,
                    f"{observation}; a fault of its storage may have refused it",
                    event.source,
                    data=about(rank, step=step),
                )
            elif unseen or (late and (doubt := _doubt(history, process))):
                collector.unknown(
                    expected,
                    f"{observation}; {UNSEEN if unseen else doubt}",
                    event.source,
                    data=about(rank, step=step),
                )
            else:
                collector.fail(expected, observation, event.source, data=about(rank, step=step))
        if kept and kept[0].rank is not None:
            due.add(kept[0].rank)
        _judge_background(history, kept, ended=_ended_well(history, process), expected=expected, collector=collector)
    if due:
        collector.settle(expected, f"{saves} saves of {ranks_text(sorted(due))}")
    collector.close()


def _doubt(history: History, process: list[Event]) -> str:
    """Return why a save of a process may be missing in its record, in a job that saves in a thread of its own."""
    if any(is_late(event) and not isinstance(event.data.get("step"), int) for event in process):
        return "it has saved in a thread of its own, and the record does not tell which steps"
    return "" if _ended_well(history, process) else "the job saves in a thread of its own, which may not have begun"


def _left_to(plan: Plan, history: History, baseline: History | None) -> dict[int | None, set[int]]:
    """Return the ranks that have never saved, each with the ranks of its replica group that have."""
    runs = (history,) if baseline is None else (history, baseline)
    savers = {event.rank for run in runs for name in _SAVES for event in run.select(name, kind="periodic")}
    return {
        rank: {member for member in group if member in savers}
        for group in plan.layout.replica_groups
        for rank in group
        if rank not in savers
    }


def _processes(history: History) -> list[list[Event]]:
    """Return the records of each process of a rank about its training and its periodic saves, in its own order."""
    by_process: dict[tuple[str | None, int | None, int | None], list[Event]] = defaultdict(list)
    for name in _EVENTS:
        for event in history.select(name):
            if name != "checkpoint.end" or (event.data.get("kind") == "periodic" and "copy_of" not in event.data):
                by_process[event.attempt, event.rank, event.pid].append(event)
    return [sorted(events, key=lambda event: event.seq) for events in by_process.values()]


def _gaps(history: History, process: list[Event], interval: int) -> list[tuple[int, int, Event]]:
    """Return the places where a process went on although a save was due.

    Each has the last saved step, the last trained one, and the event that followed.
    """
    gaps = []
    last = ended = None
    late = {event.data.get("step") for event in process if is_late(event)}
    for event in process:
        if is_late(event):
            continue
        step = event.data.get("step")
        if event.event == "train.begin":
            last = ended = None
        elif event.event == "train.end" or not isinstance(step, int):
            continue
        elif event.event == "step.begin":
            if last is None:
                last = step - 1
            last = max([last, *(saved for saved in late if isinstance(saved, int) and saved < step)])
            if ended == step - 1 and ended - last >= interval:
                gaps.append((last, ended, event))
                last = ended
        elif event.event == "step.end":
            ended = step
        else:
            last = step
    # The last checkpoint may be saved behind the end of the training.
    end = process[-1] if process[-1].event == "train.end" else None
    if last is not None and ended is not None:
        last = max([last, *(saved for saved in late if isinstance(saved, int) and saved <= ended)])
    if end is None or last is None or ended is None or ended - last < interval or not _ended_well(history, process):
        return gaps
    return [*gaps, (last, ended, end)]


def _unsaved_ends(baseline: History | None, interval: int) -> set[tuple[int | None, int, int]]:
    """Return the ends of the fault-free run behind which a save was due: the rank, its last saved and trained steps."""
    if baseline is None:
        return set()
    gaps = (gap for process in _processes(baseline) for gap in _gaps(baseline, process, interval))
    return {(event.rank, last, step) for last, step, event in gaps if event.event == "train.end"}


def _ended_well(history: History, process: list[Event]) -> bool:
    event = process[0]
    exits = history.select("rank.exit", attempt=event.attempt, rank=event.rank, pid=event.pid)
    return any(exit.data.get("code") == 0 for exit in exits)


def _judge_background(
    history: History, saves: list[Event], *, ended: bool, expected: str, collector: Collector
) -> None:
    """Judge that saves in the background have ended. The last one may be under way when its process ends."""
    for event in saves if ended else saves[:-1]:
        if not is_background(event):
            continue
        end = written(history, event)
        if end is None:
            observation = (
                f"rank {event.rank} has not recorded that its checkpoint of step {event.data.get('step')} was written"
            )
            collector.unknown(expected, observation, event.source, data=about(event.rank, step=event.data.get("step")))
        elif end.data.get("ok") is not True:
            observation = (
                f"rank {event.rank} could not write its checkpoint of step {event.data.get('step')} in the background"
            )
            collector.fail(expected, observation, end.source, data=about(event.rank, step=event.data.get("step")))
