"""Check ``history``: the record by which everything else is judged is whole and credible."""

from __future__ import annotations

from chaos.base.plain_files import read_plain
from chaos.checks.history.ends import judge_ends
from chaos.checks.history.lost_records import judge_lost_records
from chaos.checks.history.refused_callers import judge_refused_callers
from chaos.checks.history.torn_tails import torn_by_its_end
from chaos.checks.history.updates import judge_updates
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, processes, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.io import fingerprint
from chaos.plan.model import Plan

NAME = "history"

MOST_WRONG_NS = 1_000_000_000
"""Half of a round trip of two seconds, or the drift of half an hour: more is no measurement."""


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge the files of the history, and of the baseline's, for damage and for missing writers."""
    collector = Collector(NAME)
    torn = [problem.where for problem in history.problems if torn_by_its_end(problem, history)]
    for problem in history.problems:
        if problem.where not in torn:
            collector.unknown("every line of the history is complete and in order", problem.text, problem.where)
    tails = f"; half a line at the end of {text_list(torn)}: those writers were ended" if torn else ""
    collector.settle(
        "every line of the history is complete and in order", f"{len(history.events)} events, no gap{tails}"
    )
    _judge_writers(plan, history, collector)
    collector.settle("the harness and every rank have recorded", "all records are there")
    _judge_steps_counted(history, collector)
    judge_lost_records(history, collector)
    judge_ends(history, collector)
    _judge_boots(history, collector)
    _judge_fetched(history, collector)
    _judge_run(plan, history, collector)
    _judge_plan(history, artifacts, collector)
    judge_updates(plan, history, artifacts, collector)
    collector.close()
    judge_refused_callers(history, artifacts, collector)
    if artifacts.baseline is not None:
        for problem in artifacts.baseline.problems:
            collector.unknown(
                "every line of the baseline's history is whole", problem.text, f"baseline/{problem.where}"
            )
        collector.settle("every line of the baseline's history is whole", "they are", "baseline/history")
    return collector.findings()


def _judge_writers(plan: Plan, history: History, collector: Collector) -> None:
    expected = "the harness and every rank have recorded"
    if history.first("run.start") is None:
        collector.unknown(expected, "no run.start of the harness")
    for attempt in (TRAIN, RESUME):
        began = history.first("attempt.start", attempt=attempt)
        if began is None:
            if attempt == TRAIN:
                collector.unknown(expected, f"the history has no start of attempt {attempt}")
            continue
        known = processes(history, attempt)
        for rank in range(plan.layout.ranks):
            if rank not in known and attempt == TRAIN:
                collector.unknown(
                    expected, f"no history of rank {rank} in attempt {attempt}", began.source, data=about(rank)
                )
        _judge_processes(plan, history, attempt, collector, expected)


def _judge_steps_counted(history: History, collector: Collector) -> None:
    """Judge that no agent gave up counting: without all steps of a rank nothing can be said about its training."""
    for event in history.select("steps.unclear"):
        observation = f"those of rank {event.rank} in attempt {event.attempt} cannot be: {event.data.get('reason')}"
        collector.unknown("the steps of every rank are counted", observation, event.source, data=about(event.rank))


def _judge_processes(plan: Plan, history: History, attempt: str, collector: Collector, expected: str) -> None:
    """Judge that each process of a rank is known from both sides.

    The harness identified it, and its agent has recorded. The check ``mechanism`` reports a rank with more processes
    than planned; no doubt here may cover that.
    """
    known = processes(history, attempt)
    planned = [rank for recovery in plan.response.recoveries for rank in recovery.restarted] if attempt == TRAIN else []
    ranks = {rank for rank, pids in known.items() if len(pids) <= 1 + planned.count(rank)}
    agents = {(event.rank, event.pid) for event in history.select("agent.start", attempt=attempt)}
    identified = {(event.rank, event.pid) for event in history.select("rank.found", attempt=attempt)}
    for event in history.select("rank.found", attempt=attempt):
        if event.rank in ranks and (event.rank, event.pid) not in agents:
            observation = (
                f"no history of rank {event.rank} in attempt {attempt}, though its process {event.pid} was found"
            )
            collector.unknown(expected, observation, event.source, data=about(event.rank, pids=event.pid))
    # A process that ends before it trains may be gone before the harness has looked.
    trained = {(event.rank, event.pid): event for event in reversed(history.select("step.begin", attempt=attempt))}
    for (rank, pid), event in sorted(trained.items(), key=str):
        if rank in ranks and (rank, pid) not in identified:
            observation = (
                f"process {pid} trained as rank {rank} in attempt {attempt}, and the harness never identified it"
            )
            collector.unknown(expected, observation, event.source, data=about(rank, pids=pid))


def _judge_run(plan: Plan, history: History, collector: Collector) -> None:
    """Judge that nothing in the record comes from elsewhere: another run's file, or a rank that the plan lacks."""
    expected = f"all writers belong to this run and its {plan.layout.ranks} ranks"
    starts: dict[object, Event] = {}
    for event in history.select("writer.start"):
        starts.setdefault(event.data.get("run"), event)
    if None in starts or not starts:
        collector.unknown(expected, "some writers do not name their run", *places(starts.values()))
    elif len(starts) > 1:
        collector.unknown(expected, f"there are writers of {len(starts)} runs", *places(starts.values()))
    unplanned = {
        event.rank: event for event in history.events if event.rank is not None and event.rank >= plan.layout.ranks
    }
    for rank, event in unplanned.items():
        collector.unknown(expected, f"there is a rank {rank}", event.source, data=about(rank))
    collector.settle(expected, "they are")


def _judge_plan(history: History, artifacts: Artifacts, collector: Collector) -> None:
    start = history.last("plan.completed") or history.first("run.start")
    if start is None:
        return  # the statements about the writers
    expected = "the plan is unchanged since the run"
    recorded = start.data.get("plan")
    if not isinstance(recorded, str):
        collector.unknown(expected, "the run has not recorded which plan it followed", start.source)
    elif fingerprint(read_plain(artifacts.run_dir / "plan.json")) != recorded:
        collector.unknown(expected, "it was changed afterwards", "plan.json", start.source)
    collector.settle(expected, "it is", "plan.json")


def _judge_boots(history: History, collector: Collector) -> None:
    expected = "all monotonic times come from one clock, or from clocks with a measured offset"
    starts: dict[tuple[object, object], Event] = {}
    for event in history.select("writer.start"):
        starts.setdefault((event.data.get("host"), event.data.get("boot")), event)
    unmeasured = {where: event for where, event in starts.items() if where not in history.clocks}
    harness_start = history.first("writer.start", writer="harness")
    if harness_start is not None:
        unmeasured.setdefault((harness_start.data.get("host"), harness_start.data.get("boot")), harness_start)
    unsaid = {where: event for where, event in starts.items() if None in where}
    if unsaid or not starts:
        collector.unknown(expected, "some writers do not name their host", *places(unsaid.values()))
    elif len(unmeasured) > 1:
        observation = f"{len(unmeasured)} hosts or boots have monotonic clocks that cannot be compared"
        collector.unknown(expected, observation, *(event.source for event in unmeasured.values()))
    _judge_errors(history, collector)
    collector.settle(expected, "; ".join(["they are", *_clock_texts(history)]))


def _judge_errors(history: History, collector: Collector) -> None:
    """Judge the error of the clocks: a badly known clock covers any order, and its times show nothing."""
    worst: dict[str, Event] = {}
    for event in history.events:
        if event.error > max(MOST_WRONG_NS, worst[event.clock].error if event.clock in worst else 0):
            worst[event.clock] = event
    expected = f"no time of another host may be wrong by more than {MOST_WRONG_NS / 1e9:g} s"
    for clock, event in sorted(worst.items()):
        host = clock.rpartition("/")[0]
        collector.unknown(expected, f"times of {host} may be wrong by {event.error / 1e9:.3f} s", event.source)
    if any(not clock.same for clock in history.clocks.values()):
        collector.settle(expected, "none may", "history")


def _judge_fetched(history: History, collector: Collector) -> None:
    """Judge the missing files of hosts: a file that nobody could fetch says nothing about the host's ranks."""
    expected = "the files of every host were copied here"
    for event in history.select("host.unfetched"):
        files = event.data.get("files")
        files = files if isinstance(files, dict) and files else {"all": "no reason is recorded"}
        name, why = next(iter(files.items()))
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        observation = (
            f"{len(files)} of host {event.data.get('host')} in attempt {event.attempt} were not copied: {name} "
            f"({why}){more}"
        )
        collector.unknown(expected, observation, event.source)
    for event in history.select("host.lost"):
        observation = (
            f"the connection to host {event.data.get('host')} was lost, and what the host did afterwards is unknown"
        )
        collector.unknown(expected, observation, event.source)


def _clock_texts(history: History) -> list[str]:
    """Return the known facts about the clocks that are not the harness's own."""
    return [
        f"{host} is {clock.measured[0].offset / 1e9:.6f} s ahead of the harness, ± {clock.error / 1e6:.3f} ms"
        for (host, _), clock in sorted(history.clocks.items())
        if not clock.same
    ]
