"""Check ``hygiene``: every process ended as it should, every fault was undone, and nothing is left behind."""

from __future__ import annotations

from dataclasses import replace

from chaos.checks.checkpoint.broken_off import broken_off
from chaos.checks.hygiene.exits import expected_exit, fault_by_rank, judged_exits
from chaos.checks.hygiene.leftovers import judge_leftovers
from chaos.checks.hygiene.nodes_left import judge_nodes
from chaos.checks.hygiene.quarantine import judge_quarantine
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, exit_status, places, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.injection.identity import other_process
from chaos.evidence.raised import Raised, raised
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.evidence.signatures.cluster_crash import FINDING, OBSERVATION, cluster_crash
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.ledger import Ledger
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

NAME = "hygiene"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge exit statuses, healed faults, and the leftovers after the teardown."""
    collector = Collector(NAME)
    hit = fault_by_rank(plan, history)
    for rank in range(plan.layout.ranks):
        _judge_exit(plan, history, artifacts, TRAIN, rank, hit.get(rank), collector)
    if reaches_the_end(plan):
        _judge_launcher(plan, history, TRAIN, collector)
    collector.settle("the ranks of the faulted launch end as planned", "they did")
    if plan.resume.resumes and history.first("attempt.start", attempt=RESUME) is not None:
        for rank in range(plan.layout.ranks):
            _judge_exit(plan, history, artifacts, RESUME, rank, None, collector)
        _judge_launcher(plan, history, RESUME, collector)
        collector.settle("every process of the resumed job exits with 0", "they did")
    _judge_healed(plan, history, artifacts, collector)
    _judge_left(plan, history, artifacts, collector)
    judge_leftovers(plan, history, artifacts, collector)
    judge_nodes(history, collector)
    judge_quarantine(plan, history, collector)
    return collector.findings()


def _judge_exit(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    attempt: str,
    rank: int,
    fault: PlannedFault | None,
    collector: Collector,
) -> None:
    exits = history.select("rank.exit", attempt=attempt, rank=rank)
    text = f"rank {rank} of attempt {attempt} ends with {expected_exit(plan, attempt, fault).text}"
    if not exits:
        collector.unknown(text, "no exit status was recorded", data=about(rank))
    for judged in judged_exits(plan, history, exits, fault):
        data = about(rank, pids=judged.event.pid, quantity="exit status", seen=exit_status(judged.event))
        if judged.planned is None:
            collector.unknown(judged.expected, judged.observation, judged.event.source, data=data)
        elif not judged.planned and (crash := cluster_crash(plan, history, artifacts, judged.event)):
            collector.fail(judged.expected, OBSERVATION, *crash, data=replace(data, finding=FINDING))
        elif not judged.planned:
            calls = raised(history, artifacts, judged.event) if judged.event.data.get("code") else Raised()
            by = f" by {calls.error}" if calls.error else ""
            where = dict.fromkeys((*calls.where, judged.event.source))
            collector.fail(judged.expected, f"{judged.observation}{by}{calls.text}", *where, data=data)
    _judge_identity(history, attempt, rank, exits, text, collector)


def _judge_identity(
    history: History, attempt: str, rank: int, exits: list[Event], expected: str, collector: Collector
) -> None:
    for event in exits:
        later = history.select(attempt=attempt, rank=rank, pid=event.pid, writer="agent")[-1:]
        if later and event.surely_before(later[0]):
            observation = f"process {event.pid} has recorded {later[0].event} after its exit: it is another's"
            collector.unknown(
                expected, observation, event.source, later[0].source, data=about(event.rank, pids=event.pid)
            )
    starts = history.select("rank.found", attempt=attempt, rank=rank)
    for event in exits:
        if (doubt := other_process(event, [start for start in starts if start.pid == event.pid])) is not None:
            observation = (
                f"the exit status of process {event.pid} is not that of the process which was rank {rank}: {doubt}"
            )
            collector.unknown(expected, observation, event.source, *places(starts), data=about(rank, pids=event.pid))
    for start in starts:
        if exits and start.pid not in {event.pid for event in exits}:
            observation = f"no exit status of process {start.pid}, which was rank {rank}"
            collector.unknown(expected, observation, start.source, *places(exits), data=about(rank, pids=start.pid))


def _judge_launcher(plan: Plan, history: History, attempt: str, collector: Collector) -> None:
    """Judge the launcher's code where the job must end well.

    Under an agent the code is 0 even if every rank has died.
    """
    killed = [fault for fault in plan.faults if fault.role == "launcher"] if attempt == TRAIN else []
    end = required_end(killed[0]) if killed else None
    expected = f"the launcher of attempt {attempt} {'exits with 0' if end is None else f'ends with {end}'}"
    exits = [
        event
        for event in history.select("launcher.exit", attempt=attempt)
        if event.data.get("role") not in ("scheduler", "lighthouse")
    ]
    if not exits:
        collector.unknown(expected, "no exit status was recorded")
    for event in exits:
        if None not in (event.data.get("signal"), event.data.get("code")):
            observation = f"{exit_status(event)} and exit code {event.data.get('code')}: a process cannot end by both"
            collector.unknown(expected, observation, event.source, data=about(pids=event.pid))
        elif not (event.data.get("code") == 0 if end is None else end.was(event)):
            collector.fail(
                expected,
                exit_status(event),
                event.source,
                data=about(pids=event.pid, quantity="exit status", seen=exit_status(event)),
            )
    # With several nodes each has a launcher of its own; the end of one says nothing about the others'.
    ended = {event.data.get("node") for event in exits}
    nodes = {event.data.get("node"): event for event in history.select("rank.found", attempt=attempt)}
    for node, event in nodes.items():
        if exits and node not in ended | {None}:
            collector.unknown(
                expected,
                f"no exit status of the launcher of node {node} was recorded",
                event.source,
                data=about(nodes=node),
            )


def _judge_healed(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    expected = "every fault that was made is healed"
    for fault in plan.faults:
        made = history.select("fault.injecting", fault=fault.id)
        healed = history.select("fault.healed", fault=fault.id)
        if made and not healed:
            collector.unknown(
                expected,
                f"fault {fault.id} has no record of being healed",
                *places(made[:1]),
                data=about(fault=fault.id),
            )
        elif made and healed[-1].mono < made[-1].mono:
            observation = f"fault {fault.id} was made again after its last healing"
            collector.unknown(expected, observation, made[-1].source, healed[-1].source, data=about(fault=fault.id))
    ledger = Ledger(artifacts.run_dir / "undo.jsonl").read()
    if not ledger.steps:
        # Even a run without a fault has steps of its own there: its job, its private directory.
        collector.unknown(expected, "the undo ledger holds no step", "undo.jsonl", data=about(file="undo.jsonl"))
    for problem in ledger.problems:
        collector.unknown(
            expected, f"the undo ledger is damaged: {problem}", "undo.jsonl", data=about(file="undo.jsonl")
        )
    for step in ledger.open:
        collector.fail(
            expected,
            f"undo step {step.id} is still open: {step.note or step.action}",
            "undo.jsonl",
            data=about(file="undo.jsonl"),
        )
    collector.settle(expected, f"{len(plan.faults)} faults are healed, no undo step is open")


def _judge_left(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    expected = "no process, port or unfinished file is left"
    events = history.select("hygiene")
    known = {(event.pid, event.data.get("node")) for event in history.select("launcher.found")}
    broken = broken_off(plan, history, artifacts)
    for event in history.select("job.leftovers"):
        left = [
            orphan for orphan in event.data.get("orphans") or [] if (orphan.get("pid"), orphan.get("node")) not in known
        ]
        if left:
            observation = f"outlived the ranks of attempt {event.attempt}: {_processes(left)}"
            collector.fail(expected, observation, event.source, data=about(pids=_ids(left)))
    if not events:
        collector.unknown(expected, "no check was made: the history has no hygiene event")
    launched = history.last("attempt.start")
    if events and launched is not None and events[-1].mono < launched.mono:
        observation = f"no check was made after attempt {launched.attempt} had started"
        collector.unknown(expected, observation, events[-1].source, launched.source)
    for event in events:
        if event.data.get("orphans"):
            collector.fail(
                expected,
                f"processes left: {_processes(event.data['orphans'])}",
                event.source,
                data=about(pids=_ids(event.data["orphans"])),
            )
        _judge_ports(event, expected, collector)
        stale = [
            name
            for path in event.data.get("stale") or []
            if not _allowed(plan, str(path)) and (name := artifacts.recorded(str(path))) not in broken
        ]
        if stale:
            collector.fail(expected, f"stale files: {text_list(stale)}", event.source, data=about(file=stale[0]))
        if event.data.get("private_left"):
            collector.fail(expected, "the run's private directory is left", event.source)
        unsearched = event.data.get("unsearched", [])
        for text in unsearched if isinstance(unsearched, list) else [unsearched]:
            collector.unknown(expected, f"not searched when the run ended: {text}", event.source)
        absent = [key for key in ("orphans", "ports", "stale") if not isinstance(event.data.get(key), list)]
        absent += [] if isinstance(event.data.get("private_left"), bool) else ["the run's private directory"]
        if absent:
            collector.unknown(expected, f"not looked for: {text_list(absent)}", event.source)
    unfinished = [
        name
        for path in artifacts.unfinished()
        if not _allowed(plan, name := artifacts.relative(path)) and name not in broken
    ]
    if unfinished:
        collector.fail(
            expected, f"unfinished files: {text_list(unfinished)}", *unfinished[:5], data=about(file=unfinished[0])
        )
    collector.settle(expected, "none is")


def _judge_ports(event: Event, expected: str, collector: Collector) -> None:
    """Judge the ports: a number is a port on which a process of the run listens, a table a port of unknown owner."""
    ports = event.data.get("ports")
    if not isinstance(ports, list):
        return  # reported as not looked for
    open_ports = [port for port in ports if not isinstance(port, dict)]
    if open_ports:
        collector.fail(
            expected,
            f"ports still open: {text_list(open_ports)}",
            event.source,
            data=about(quantity="port", seen=text_list(open_ports)),
        )
    for entry in ports:
        if isinstance(entry, dict):
            listeners = entry.get("listeners")
            listed = (
                [process for process in listeners if isinstance(process, dict)] if isinstance(listeners, list) else []
            )
            by = _processes(listed) if listed else "processes that cannot be seen"
            observation = f"port {entry.get('port')} is in use by processes of no known run: {by}"
            collector.unknown(expected, observation, event.source, data=about(quantity="port", seen=entry.get("port")))


def _ids(listed: object) -> list[int | None]:
    """Return the ids of processes, as far as the record has them."""
    return [process.get("pid") for process in listed if isinstance(process, dict)] if isinstance(listed, list) else []


def _processes(listed: list[dict[str, object]]) -> str:
    commands = ((process.get("pid"), process.get("cmdline")) for process in listed)
    return text_list(
        f"{pid} ({' '.join(map(str, command)) if isinstance(command, list) else command})" for pid, command in commands
    )


def _allowed(plan: Plan, path: str) -> bool:
    """Return whether the leftover is allowed: a planned broken-off save leaves its temporary directory."""
    temporary = any(part.endswith("_tmp") for part in path.split("/"))
    return plan.checkpoint is None and not reaches_the_end(plan) and temporary
