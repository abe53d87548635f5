"""Part of check ``mechanism``: the cluster's agent was asked, and its choice is the plan's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, last_trained, text_list
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.mechanisms.clean_exit import ends_by_sdk
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.parts.response import ENDING
from chaos.plan.recovery.mechanism import ROLLING_BACK
from chaos.plan.recovery.registry import Facts

WORDS: Mapping[str, str] = Facts(lambda mechanism: mechanism.strategy)
"""The SDK's words for mechanisms when it talks to the agent. A restart in place is a ``recover`` to it, too."""


def judge_strategies(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the SDK's own log of its talk with the agent. Mechanisms outside the SDK are not in it.

    The agent's choice of ``exit`` has no reported result: :mod:`chaos.mechanisms.clean_exit` judges that the SDK
    carries it out.
    """
    planned = [recovery for recovery in plan.response.recoveries if recovery.mechanism in WORDS]
    exits = ends_by_sdk(plan)
    if not plan.fault_tolerance.strategies or not (planned or exits):
        return
    line = line_of(plan, "mechanism")
    words = [*(WORDS[recovery.mechanism] for recovery in planned), *(["exit"] if exits else [])]
    expected = f"the cluster's agent is asked, and chooses {text_list(words)}"
    logged = artifacts.sdk_events(TRAIN)
    offers = [
        event for event in logged if event.kind == "ttp.agent_action" and event.fields["action"] == "report_strategies"
    ]
    if not offers:
        collector.unknown(expected, "the SDK's log shows no strategy that was offered", line)
        collector.close()
        return
    offered = " ".join(str(event.fields.get("arguments")) for event in offers)
    for word in dict.fromkeys(words):
        if f"'{word}'" not in offered:
            data = about(file=offers[0].file, quantity="strategy", expected=word)
            collector.fail(expected, f"the SDK has not offered {word}", line, offers[0].source, data=data)
    if exits and _could_be_saved(plan, history) and "'dump'" not in offered:
        observation = (
            "the SDK has not offered dump, though every replica group has a rank with a state that no fault hits"
        )
        data = about(file=offers[0].file, quantity="strategy", expected="dump")
        collector.fail(expected, observation, line, offers[0].source, data=data)
    results = [event for event in logged if event.kind == "ttp.result"]
    _judge_results(
        collector,
        expected,
        [event for event in results if event.fields["code"] == 0],
        [WORDS[recovery.mechanism] for recovery in planned if recovery.succeeds],
        len([recovery for recovery in planned if recovery.succeeds and recovery.mechanism not in ENDING]),
        line,
        _repaired(logged),
    )
    failed = {str(event.fields.get("strategy")): event for event in results if event.fields["code"] != 0}
    may_fail = {WORDS[recovery.mechanism] for recovery in planned if not recovery.succeeds}
    for word in sorted(failed.keys() & (set(WORDS.values()) - may_fail)):
        data = about(file=failed[word].file, quantity="strategy", seen=word)
        collector.fail(expected, f"the SDK reports that {word} failed", line, failed[word].source, data=data)
    for recovery in planned:
        if not recovery.succeeds and recovery.mechanism not in ENDING and WORDS[recovery.mechanism] not in failed:
            observation = f"the SDK's log does not show that {WORDS[recovery.mechanism]} failed"
            collector.unknown(expected, observation, line, *(event.source for event in results[:3]))
    where = (event.source for event in offers[:3])
    collector.settle(expected, f"it was asked {len(offers)} times", line, *where, by_log=True)


def _could_be_saved(plan: Plan, history: History) -> bool:
    """Return whether every replica group has a rank that no fault hits and that has trained a step.

    After a rollback there may still be nothing to save: the ranks count their steps anew.
    """
    hit = {rank for fault in plan.faults if not fault.effect.harmless for rank in fault.ranks}
    whole = {rank for rank in range(plan.layout.ranks) if rank not in hit and last_trained(history, rank) is not None}
    saved = all(whole.intersection(group) for group in plan.layout.replica_groups)
    return saved and ROLLING_BACK.isdisjoint(plan.fault_tolerance.protection)


def _repaired(logged: list[LogEvent]) -> int:
    """Return how often the controller has come back to normal from a repair, by its states."""
    states = [str(event.fields.get("state")) for event in logged if event.kind == "ttp.state"]
    return sum(pair == ("REPAIR", "NORMAL") for pair in pairwise(states))


def _judge_results(
    collector: Collector, expected: str, done: list[LogEvent], planned: list[str], least: int, line: str, repaired: int
) -> None:
    """Judge the strategies that succeeded: in order, and no other.

    The first ``least`` of the expected ones must be reported: the launch goes on after them. The save of an end-of-life
    checkpoint is the SDK's last report, and the end of the job may come before it. The vendor's controller reports a
    repair only when a heartbeat has shown a later step, which the end of a short job prevents; its ``repaired`` returns
    to normal are in its states all the same.
    """
    succeeded = [str(event.fields.get("strategy")) for event in done]
    if succeeded == planned[: len(succeeded)] and (len(succeeded) >= least or repaired == least):
        return
    text = (
        f"the SDK reports success of {text_list(succeeded) or 'none'}, where {text_list(planned) or 'none'} is planned"
    )
    if succeeded == planned[: len(succeeded)]:
        collector.unknown(expected, text, line, *(event.source for event in done[:3]))
    else:
        data = about(file=done[0].file, quantity="strategy", expected=text_list(planned), seen=text_list(succeeded))
        collector.fail(expected, text, line, *(event.source for event in done[:3]), data=data)
