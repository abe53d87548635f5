"""Part of check ``mechanism``: the SDK's own log reports no failure of a recovery that counts as a success."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.mechanisms.registry import RULES
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import REPAIRING, SAVING
from chaos.plan.recovery.registry import Facts

EXPECTED = "the SDK's log reports no failure in a recovery that succeeds"

OPERATIONS: Mapping[str, frozenset[str]] = Facts(lambda mechanism: mechanism.operations or None)
"""The orders of the controller to the ranks in each mechanism's recovery, as its log names them."""


def judge_reported_failures(plan: Plan, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the failures that the controller reports.

    Says nothing about a mechanism that is planned to fail at any time.
    """
    planned = {recovery.mechanism for recovery in plan.response.recoveries}
    failing = {recovery.mechanism for recovery in plan.response.recoveries if not recovery.succeeds}
    mechanisms = planned.intersection(OPERATIONS) - failing
    logged = artifacts.sdk_events(TRAIN)
    if not mechanisms or not logged:
        return
    line = line_of(plan, "mechanism")
    for event, observation in failures(logged, mechanisms):
        collector.fail(EXPECTED, observation, line, event.source, data=about(file=event.file))
    collector.settle(EXPECTED, f"none in {len(logged)} of its lines", line)


def failures(logged: list[LogEvent], mechanisms: set[str]) -> Iterator[tuple[LogEvent, str]]:
    """Yield the lines that contradict the success of these mechanisms, each with its statement."""
    operations = {name for mechanism in mechanisms for name in OPERATIONS[mechanism]}
    failure_kinds = {kind for mechanism in mechanisms for kind in RULES[mechanism].failures}
    repairing = not REPAIRING.isdisjoint(mechanisms)
    states: dict[str, str] = {}
    for event in logged:
        fields = event.fields
        if event.kind == "ttp.state":
            states[event.file] = str(fields.get("state"))
        elif event.kind in failure_kinds:
            yield event, f"its controller says: {fields.get('what_text')} failed"
        elif event.kind == "ttp.unanswered" and fields.get("operation") in operations:
            yield event, f"ranks {fields.get('ranks')} have not answered to {fields.get('operation')}"
        elif event.kind == "ttp.assertion" and states.get(event.file) == "REPAIR" and repairing:
            yield event, f"a step of the repair does not hold: {fields.get('condition_text')}"
        elif _is_order_to_save(event) and not SAVING.isdisjoint(mechanisms):
            yield event, "the cluster has ordered the save, so it does not prove what noticed the fault"


def _is_order_to_save(event: LogEvent) -> bool:
    """Return whether the cluster has ordered the save of its own accord, and not after a failed repair."""
    return event.kind == "ttp.cluster_order" and event.fields.get("order") == "dump" and "why_text" not in event.fields
