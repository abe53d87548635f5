"""Whether each option that shortens a recovery was really used where the plan has it, and nowhere else.

Part of the check ``recovery``: a phase that is short for another reason would make a comparison worthless.
"""

from __future__ import annotations

from chaos.checks.recovery.found_link import judge_found_link
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_background, written
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, by_rank, places, ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

CACHE_HIT = "compile.cache_hit"
CACHE_MISS = "compile.cache_miss"
"""Lines of MindSpore (2.10); a miss without a cache is silent."""

WARNINGS = "[WARNING] "
"""The mark of a log that shows warnings: without it, a missing line about a cache proves nothing."""


def judge_recovery_options(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every option that the job has, and the lack of every other option."""
    if plan.resume.resumes:
        _judge_memory(plan, history, collector)
        if plan.fault_tolerance.recovery_options.graph:
            _judge_cache(plan, history, artifacts, collector)
    planned = plan.fault_tolerance.recovery_options.asynchronous_saving
    if plan.training.checkpoint_interval is not None and planned is not None:
        _judge_saving(planned, history, collector)
    judge_found_link(plan, history, artifacts, collector)


def _judge_memory(plan: Plan, history: History, collector: Collector) -> None:
    reads = by_rank(history, "checkpoint.read", RESUME)
    source = "memory" if plan.fault_tolerance.recovery_options.memory else "storage"
    expected = f"the checkpoint to go on from is read from {source}"
    if not reads and not plan.fault_tolerance.recovery_options.memory:
        return  # A job whose storage is not watched; nothing is claimed about it.
    for rank in range(plan.layout.ranks):
        events = reads.get(rank, [])
        if not events:
            collector.unknown(expected, f"no read of rank {rank} is recorded", data=about(rank))
        for event in events:
            if event.data.get("source") != source:
                collector.fail(
                    expected,
                    f"rank {rank} read {event.data.get('path')} from {event.data.get('source')}",
                    event.source,
                    data=about(rank),
                )
    observation = f"on {ranks_text(reads)}, by the readers' own records alone"
    collector.settle(expected, observation, *places(events[0] for events in reads.values()))


def _judge_cache(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    planned = plan.fault_tolerance.recovery_options.compile_cache
    expected = f"the graphs of the restarted job come {'from the cache' if planned else 'from no cache'}"
    compiled = by_rank(history, "graph.compiled", RESUME)
    for rank in range(plan.layout.ranks):
        log = f"logs/{RESUME}/worker_{rank}.log"
        if rank not in compiled:
            collector.unknown(expected, f"rank {rank} is not recorded to have made a graph", data=about(rank))
            continue
        logged_kinds = {event.kind for event in artifacts.worker_events(RESUME, rank)}
        hit = CACHE_HIT in logged_kinds
        if planned and not hit:
            if CACHE_MISS in logged_kinds:
                collector.fail(expected, f"rank {rank} has compiled anew", log, data=about(rank))
            else:
                collector.unknown(
                    expected, f"the log of rank {rank} does not say whether the cache was used", log, data=about(rank)
                )
        elif hit and not planned:
            collector.fail(expected, f"rank {rank} has used a cache", log, data=about(rank))
        elif not planned and not artifacts.log_contains(RESUME, WARNINGS, rank):
            collector.unknown(
                expected,
                f"no log of rank {rank} shows warnings, so use of a cache would not show",
                log,
                data=about(rank),
            )
        if hit:
            _judge_cache_files(compiled[rank][0], log, expected, collector)
    alone = planned and any("cached" not in events[0].data for events in compiled.values())
    collector.settle(expected, f"on {plan.layout.ranks} ranks", by_log=alone)


def _judge_cache_files(graph: Event, log: str, expected: str, collector: Collector) -> None:
    """Judge the cache's files: a graph from the cache was in one of its files before, and no file is written for it."""
    if graph.data.get("cached") is False:
        observation = f"the log of rank {graph.rank} says that a cache was used, but no cache held a graph"
        collector.fail(expected, observation, log, graph.source, data=about(graph.rank))
    elif graph.data.get("cache_written") is True:
        observation = f"the log of rank {graph.rank} says that a cache was used, but the cache was written meanwhile"
        collector.fail(expected, observation, log, graph.source, data=about(graph.rank))


def _judge_saving(planned: bool, history: History, collector: Collector) -> None:
    expected = f"periodic checkpoints are written {'in the background' if planned else 'while training waits'}"
    saves = [
        event for event in history.select("checkpoint.begin", attempt=TRAIN) if event.data.get("kind") == "periodic"
    ]
    if not saves and not planned:
        return  # The fault came before the first save; the plan knows, and a comparison reports that none was made.
    if not saves:
        collector.unknown(expected, "no periodic checkpoint is recorded")
    for event in saves:
        if is_background(event) is not planned:
            collector.fail(
                expected,
                f"rank {event.rank} wrote {event.data.get('path')} otherwise",
                event.source,
                data=about(event.rank),
            )
        elif planned:
            _judge_thread(history, event, expected, collector)
    collector.settle(expected, f"{len(saves)} are", *places(saves[:1]))


def _judge_thread(history: History, save: Event, expected: str, collector: Collector) -> None:
    """Judge that a save in the background is written by another thread; agents of earlier versions do not record it.

    A missing record of a save whose process was ended meanwhile proves nothing.
    """
    end = written(history, save)
    if end is not None and end.data.get("background") is False:
        observation = f"rank {save.rank} wrote {save.data.get('path')} in the training thread, not in the background"
        collector.fail(expected, observation, end.source, save.source, data=about(save.rank))
