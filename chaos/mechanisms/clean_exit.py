"""Part of check ``mechanism``: where nothing can save the job it is the SDK that has ended it, not just anything."""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, places, ranks_text, signal_number
from chaos.evidence.protection import CONNECTED, CONTROLLER
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import IN_STEP, SAVING

EXPECTED = "the SDK itself ends the job: it tells every rank that no fault hits to exit, and saves nothing"

_SIGKILL = 9


def ends_by_sdk(plan: Plan) -> bool:
    """Return whether the plan says that the job ends without a recovery, with the SDK in it to decide that.

    With TSP, TRE or RSC alone nobody watches over lost ranks but the launcher or the cluster's agent.
    """
    return plan.response.mechanism == "none" and not IN_STEP.isdisjoint(plan.fault_tolerance.protection)


def judge_ended(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the calls of handler ``exit``, and the SDK's own log. Says nothing about other plans.

    A controller that dies with its rank can order nothing: then its presence counts. A controller that exits with its
    rank may be gone before it has ordered the others to exit, and with an agent the vendor's controller first waits for
    the agent to end the ranks (docs/design/conformance.md). So ranks without the order must have such a reason.
    """
    if not ends_by_sdk(plan):
        return
    line = line_of(plan, "mechanism")
    exit_calls, logged = _exits_ordered(history), artifacts.sdk_events(TRAIN)
    _judge_nothing_saved(plan, logged, collector, line)
    ended = [
        event for event in logged if event.kind in ("ttp.exit_sent", "ttp.controller_end") or _is_state(event, "EXIT")
    ]
    where = (*places(exit_calls.values()), *(event.source for event in ended))[:4]
    host = _host(logged)
    if host is not None and host.rank in _silent(plan) and not ended:
        alone = _judge_host(history, host, collector)
        observation = f"its controller was in rank {host.rank}, and gone with it"
        collector.settle(EXPECTED, observation, line, host.source, *where, by_log=alone)
        return
    if not exit_calls and not ended:
        what = "the SDK's log" if logged else "a log of the SDK"
        collector.unknown(EXPECTED, f"neither a call of handler exit nor {what} shows that it ended the job", line)
    for rank in range(plan.layout.ranks):
        excused = (host is not None and host.rank in exit_calls) or (ended and _killed_by_agent(plan, history, rank))
        if rank not in exit_calls and rank not in _hit(plan) and (exit_calls or ended) and not excused:
            collector.unknown(
                EXPECTED, f"no record shows that rank {rank} was told to exit", line, *where, data=about(rank)
            )
    observation = f"it told {ranks_text(sorted(exit_calls))}" if exit_calls else "it ended the job, by its log"
    collector.settle(EXPECTED, observation, line, *where, by_log=not exit_calls)


def _judge_host(history: History, host: LogEvent, collector: Collector) -> bool:
    """Compare the line of the SDK's log with the ranks' own records; return whether it is the only witness.

    A rank whose agent records its connection would have recorded the controller as well; where another rank has, the
    line may be a backup controller's.
    """
    started = {event.rank: event for event in history.select(CONTROLLER, attempt=TRAIN)}
    if not started and (connected := history.select(CONNECTED, attempt=TRAIN, rank=host.rank)):
        observation = (
            f"the SDK's log has its controller in rank {host.rank}, and no rank has recorded that it started one"
        )
        collector.fail(EXPECTED, observation, host.source, *places(connected[:1]), data=about(host.rank))
    return host.rank not in started


def _exits_ordered(history: History) -> dict[int, Event]:
    """Return the first call of handler ``exit`` on each rank."""
    exit_calls: dict[int, Event] = {}
    for event in history.select("handler.enter", attempt=TRAIN, name="exit"):
        if event.rank is not None:
            exit_calls.setdefault(event.rank, event)
    return exit_calls


def _hit(plan: Plan) -> frozenset[int]:
    return frozenset(rank for fault in plan.faults if not fault.effect.harmless for rank in fault.ranks)


def _silent(plan: Plan) -> frozenset[int]:
    """Return the ranks whose process a fault ends or stops, and with it a controller in it."""
    return frozenset(rank for fault in plan.faults if fault.effect.silences for rank in fault.ranks)


def _killed_by_agent(plan: Plan, history: History, rank: int) -> bool:
    """Return whether an agent may have ended the rank before the controller ordered it to exit."""
    ends = history.select("rank.exit", attempt=TRAIN, rank=rank)
    return bool(plan.fault_tolerance.strategies and ends and signal_number(ends[-1].data.get("signal")) == _SIGKILL)


def _host(logged: list[LogEvent]) -> LogEvent | None:
    """Return the line by which a controller has started inside a rank; None where it is outside, or not logged."""
    starts = [event for event in logged if event.kind == "ttp.controller_start"]
    return starts[-1] if starts and starts[-1].rank is not None and starts[-1].rank >= 0 else None


def _is_state(event: LogEvent, state: str) -> bool:
    return event.kind == "ttp.state" and event.fields.get("state") == state


def _judge_nothing_saved(plan: Plan, logged: list[LogEvent], collector: Collector, line: str) -> None:
    """Judge that the controller has not even begun a save where the plan has no broken-off one."""
    if any(recovery.mechanism in SAVING for recovery in plan.response.recoveries):
        return
    for event in logged:
        if _is_state(event, "DUMP"):
            collector.fail(
                EXPECTED,
                "its controller went to save an end-of-life checkpoint",
                line,
                event.source,
                data=about(file=event.file),
            )
