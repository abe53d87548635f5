"""Check ``mechanism``: the planned mechanisms acted, in their order, once each, and no other did."""

from __future__ import annotations

from chaos.checks.mechanism.first_error import judge_first_errors
from chaos.checks.mechanism.protected import judge_protected
from chaos.checks.mechanism.reported_failures import judge_reported_failures
from chaos.checks.mechanism.sdk import judge_sdk
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.logged import logged
from chaos.evidence.mechanisms_seen import Acted, mechanisms
from chaos.evidence.recovery_windows import Ambiguous, Window, reaches_the_end, recovery_windows
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.faults.cluster.rule import judge_kept_pods
from chaos.faults.network.rule import judge_cut_off
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.clean_exit import judge_ended
from chaos.mechanisms.heartbeat import judge_watched
from chaos.mechanisms.processes import judge_processes
from chaos.mechanisms.registry import RULES
from chaos.mechanisms.strategies import judge_strategies
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import SAVING
from chaos.plan.recovery.registry import mechanisms as registered

NAME = "mechanism"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge which mechanisms acted in the faulted launch, and that none had to act after the resume."""
    collector = Collector(NAME)
    unknown = sorted({recovery.mechanism for recovery in plan.response.recoveries} - RULES.keys())
    if unknown:
        for name in unknown:
            collector.unknown(f"{name} acts, and no other", f"there is no rule by which to tell {name}")
        return collector.findings()
    logged(plan, history, artifacts)  # goes through the ranks' logs once, for this check and those that follow
    acted = mechanisms(history, artifacts, TRAIN, cleans_before_saving=plan.fault_tolerance.cleans_before_saving)
    if not acted.listened:
        collector.unknown(
            "every mechanism that acts is seen", "neither an agent nor the SDK has recorded anything", "history"
        )
    _judge_unplanned(plan, history, acted, collector)
    judge_processes(plan, history, collector)
    collector.settle(_alone(plan), "no sign of another", _line(plan))
    judge_sdk(plan, history, artifacts, collector)
    judge_kept_pods(plan, history, collector)
    if plan.response.recoveries:
        _judge_recoveries(plan, history, artifacts, collector)
        judge_reported_failures(plan, artifacts, collector)
    else:
        collector.close()
    judge_ended(plan, history, artifacts, collector)
    judge_first_errors(plan, history, artifacts, collector)
    judge_cut_off(plan, history, collector)
    judge_strategies(plan, history, artifacts, collector)
    judge_protected(plan, history, collector)
    for rule in RULES.values():
        if rule.judge_launch is not None:
            rule.judge_launch(plan, history, artifacts, collector)
    _judge_resume(plan, history, artifacts, collector)
    return collector.findings()


def _line(plan: Plan) -> str:
    return line_of(plan, "mechanism")


def _alone(plan: Plan) -> str:
    planned = list(dict.fromkeys(recovery.mechanism for recovery in plan.response.recoveries))
    return f"no mechanism but {', '.join(planned)} acts" if planned else "no mechanism acts"


def _judge_unplanned(plan: Plan, history: History, acted: Acted, collector: Collector) -> None:
    """Judge that no mechanism outside the plan left a sign, in the whole launch."""
    expected = _alone(plan)
    signs = [registered()[recovery.mechanism].signs for recovery in plan.response.recoveries]
    allowed = {name for sign in signs if sign is not None for name in (sign.name, *sign.also)}
    for mechanism, evidence in acted.evidence.items():
        if mechanism not in allowed:
            what = text_list(dict.fromkeys(observation for observation, _ in evidence))
            collector.fail(
                expected,
                f"{mechanism} acted: {what}",
                _line(plan),
                *(where for _, where in evidence[:5]),
                data=about(mechanism=mechanism),
            )
    if not reaches_the_end(plan):
        return
    for event in history.select("handler.enter", attempt=TRAIN, name="exit"):
        collector.fail(
            expected,
            f"rank {event.rank} was told to exit",
            _line(plan),
            event.source,
            data=about(event.rank),
        )
    for event in history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life"):
        collector.fail(
            expected,
            f"rank {event.rank} saved an end-of-life checkpoint",
            _line(plan),
            event.source,
            data=about(event.rank),
        )
    for event in history.select("attempt.start", attempt=RESUME):
        collector.fail(
            expected,
            "the job was started again",
            _line(plan),
            event.source,
            data=about(range(plan.layout.ranks)),
        )


def _judge_recoveries(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    try:
        planned = recovery_windows(plan, history)
    except Ambiguous as reason:
        collector.unknown("each recovery has its time", str(reason), _line(plan))
        collector.close()
        return
    _judge_times(plan, history, planned, collector)
    for window in planned:
        for recovery in window.all:
            RULES[recovery.mechanism].judge(Case(plan, window, recovery, history, artifacts, collector))


def _judge_times(plan: Plan, history: History, planned: list[Window], collector: Collector) -> None:
    """Judge that handlers are called only in recoveries whose mechanism calls them, never before the first fault."""
    expected = "the SDK calls handlers only in a recovery, and only the handlers of its mechanism"
    for event in history.select("handler.enter", attempt=TRAIN):
        name = str(event.data.get("name"))
        window = next((window for window in reversed(planned) if window.begin <= event.mono), None)
        if window is None:
            collector.fail(
                expected,
                f"{name} was called on rank {event.rank} before the fault",
                event.source,
                data=about(event.rank),
            )
        elif not window.holds(event):
            continue  # an event after the last recovery belongs to the unanswered fault
        elif name != "exit" and not any(name in _handlers(plan, recovery.mechanism) for recovery in window.all):
            listed = ", ".join(recovery.mechanism for recovery in window.all)
            observation = f"{name} was called on rank {event.rank} in recovery {window.number}, which is for {listed}"
            collector.fail(expected, observation, _line(plan), event.source, data=about(event.rank))
    collector.settle(expected, f"correct in {len(planned)} of {len(planned)} recoveries", _line(plan))


def _handlers(plan: Plan, mechanism: str) -> tuple[str, ...]:
    """Return the handlers that are called for a mechanism."""
    cleans = plan.fault_tolerance.cleans_before_saving and mechanism in SAVING
    return (*RULES[mechanism].handlers, *(("clean",) if cleans else ()))


def _judge_resume(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    if not plan.resume.resumes:
        return
    expected = "no mechanism acts after the resume"
    acted = mechanisms(history, artifacts, RESUME)
    for mechanism, evidence in acted.evidence.items():
        signs = text_list(dict.fromkeys(observation for observation, _ in evidence))
        collector.fail(
            expected,
            f"{mechanism} acted: {signs}",
            *(where for _, where in evidence[:5]),
            data=about(mechanism=mechanism),
        )
    if not acted.listened:
        collector.unknown(expected, "neither an agent nor the SDK has recorded anything in attempt resume")
    collector.settle(expected, "none did")
    judge_watched(plan, history, artifacts, collector)
