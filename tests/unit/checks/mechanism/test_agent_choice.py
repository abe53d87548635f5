"""What the cluster's agent chose is judged by the SDK's own log, in the vendor's lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.strategies import judge_strategies
from chaos.plan.model import Plan
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed
from tests.unit.checks.mechanism.test_rsc_rule import PLAN

FAULTS = "{1: 0}"
NOTHING = History()
TRAINED = History(tuple(Event("step.end", 0, 0, "agent", 0, "train", rank, data={"step": 3}) for rank in range(4)))


def plan_of(*recoveries: tuple[str, bool]) -> Plan:
    planned = tuple(Recovery(name, ("death",), 4, succeeds=good) for name, good in recoveries)
    return changed(PLAN, recoveries=planned, strategies=("retry", "recover", "dump"), lines={"mechanism": 9})


def ended(*recoveries: tuple[str, bool]) -> Plan:
    """ARF is on, and the agent may choose exit alone."""
    return changed(plan_of(*recoveries), mechanism="none", strategies=("exit",), protection=("ARF",))


def line(text: str) -> str:
    return f"2026-11-21 17:57:53.549008 19355 info [19355][PYH ttp_mindx_api.py:67] do action {text}\n"


def offer(*words: str) -> str:
    return line(f"report_strategies, arg=({FAULTS}, {list(words)!r})")


def result(code: int, word: str) -> str:
    return line(f"report_result, arg=({code}, 'as it was', {FAULTS}, '{word}')")


ALL = offer("exit", "dump", "retry", "recover")
RETRY, RETRY_RECOVER, DUMP = (
    plan_of(("UCE", True)),
    plan_of(("UCE", False), ("ARF", True)),
    plan_of(("TTP", True)),
)


def verdicts(tmp_path: Path, plan: Plan, *lines: str, history: History = NOTHING) -> list[tuple[str, str]]:
    logs = tmp_path / "logs" / "train" / "ttp"
    logs.mkdir(parents=True)
    (logs / "ttp_log.log.19355").write_text("".join(lines))
    found = Collector("mechanism")
    judge_strategies(plan, history, Artifacts(tmp_path, None), found)
    return [(finding.verdict, finding.seen) for finding in found.findings()]


def states(*names: str) -> str:
    place = "info [19355][TTP controller_state_machine.cpp:115]"
    return "".join(f"2026-11-21 17:57:53.549008 19355 {place} nextState: STATE_OP_{name}\n" for name in names)


REPAIRED = states("NORMAL", "ABNORMAL", "ENV_CLEAR", "REPAIR", "NORMAL")


@pytest.mark.parametrize(
    ("plan", "lines"),
    [
        (RETRY, [ALL, result(0, "retry")]),
        (RETRY, [ALL, REPAIRED]),  # a job that ends before the SDK has reported
        (RETRY_RECOVER, [ALL, result(405, "retry"), result(0, "recover")]),
        (DUMP, [offer("exit", "dump")]),
        (DUMP, [offer("exit", "dump"), result(0, "dump")]),
        (plan_of(("ARF", False), ("TTP", True)), [ALL, result(406, "recover"), result(0, "dump")]),
        (plan_of(("UCE", True), ("ARF", True)), [ALL, result(0, "retry"), ALL, result(0, "recover")]),
    ],
)
def test_what_was_planned_and_chosen_passes(tmp_path: Path, plan: Plan, lines: list[str]) -> None:
    assert [verdict for verdict, _ in verdicts(tmp_path, plan, *lines)] == ["pass"]


@pytest.mark.parametrize(
    ("plan", "lines", "seen"),
    [
        (RETRY, [ALL, result(0, "retry"), result(0, "dump")], "success of retry, dump, where retry is planned"),
        (RETRY, [ALL, result(0, "recover")], "success of recover, where retry is planned"),
        (RETRY, [ALL, REPAIRED, result(405, "retry")], "the SDK reports that retry failed"),
        (RETRY_RECOVER, [ALL, result(405, "retry"), result(0, "recover"), result(1, "dump")], "that dump failed"),
        (RETRY, [ALL, result(0, "retry"), result(0, "retry")], "success of retry, retry, where retry is planned"),
        (RETRY, [offer("exit", "dump"), result(0, "retry")], "the SDK has not offered retry"),
        (DUMP, [offer("exit", "dump"), result(0, "recover")], "success of recover, where dump is planned"),
    ],
)
def test_another_choice_fails(tmp_path: Path, plan: Plan, lines: list[str], seen: str) -> None:
    ((verdict, text),) = verdicts(tmp_path, plan, *lines)
    assert verdict == "fail"
    assert seen in text


@pytest.mark.parametrize(
    ("plan", "lines", "seen"),
    [
        (RETRY, [], "shows no strategy that was offered"),
        (RETRY, [ALL], "success of none, where retry is planned"),
        (RETRY, [ALL, REPAIRED, REPAIRED], "success of none, where retry is planned"),
        (RETRY, [ALL, states("REPAIR", "DUMP", "NORMAL")], "success of none, where retry is planned"),
        (RETRY_RECOVER, [ALL, result(0, "recover")], "does not show that retry failed"),
    ],
)
def test_without_evidence_it_is_unknown(tmp_path: Path, plan: Plan, lines: list[str], seen: str) -> None:
    ((verdict, text),) = verdicts(tmp_path, plan, *lines)
    assert verdict == "unknown"
    assert seen in text


@pytest.mark.parametrize("plan", [changed(RETRY, strategies=()), PLAN])
def test_without_an_agent_or_without_the_sdk_nothing_is_asked(tmp_path: Path, plan: Plan) -> None:
    assert verdicts(tmp_path, plan) == []


EXIT = states("NORMAL", "ABNORMAL", "EXIT")
SPARED = replace(ended(), faults=())


@pytest.mark.parametrize("plan", [ended(), SPARED])
def test_an_agent_that_chooses_exit_was_asked(tmp_path: Path, plan: Plan) -> None:
    assert verdicts(tmp_path, plan, offer("exit", "dump", "recover"), EXIT, history=TRAINED) == [
        ("pass", "it was asked 1 times, by lines of a log alone")
    ]


def test_an_agent_that_nobody_asked_has_not_chosen_exit(tmp_path: Path) -> None:
    ((verdict, seen),) = verdicts(tmp_path, ended(), EXIT, history=TRAINED)
    assert (verdict, seen) == ("unknown", "the SDK's log shows no strategy that was offered")


@pytest.mark.parametrize(
    ("plan", "lines", "history", "seen"),
    [
        (SPARED, [offer("exit"), EXIT], TRAINED, "the SDK has not offered dump, though every replica group"),
        (SPARED, [offer("dump"), EXIT], TRAINED, "the SDK has not offered exit"),
        (
            ended(),
            [offer("exit", "dump"), result(0, "dump")],
            TRAINED,
            "success of dump, where none is planned",
        ),
        (ended(("ARF", False)), [ALL, result(406, "recover"), result(0, "dump")], NOTHING, "success of dump"),
    ],
)
def test_where_exit_is_planned_another_offer_or_choice_fails(
    tmp_path: Path, plan: Plan, lines: list[str], history: History, seen: str
) -> None:
    ((verdict, text),) = verdicts(tmp_path, plan, *lines, history=history)
    assert verdict == "fail"
    assert seen in text


@pytest.mark.parametrize(
    "plan",
    [
        ended(),
        changed(SPARED, protection=("TRE", "ARF")),
        changed(SPARED, faults=PLAN.faults, replica_groups=(PLAN.faults[0].ranks,)),
    ],
    ids=["nobody has trained", "steps were counted anew", "a group is hit"],
)
def test_what_cannot_be_saved_need_not_be_offered(tmp_path: Path, plan: Plan) -> None:
    history = NOTHING if plan == ended() else TRAINED
    assert [verdict for verdict, _ in verdicts(tmp_path, plan, offer("exit"), EXIT, history=history)] == ["pass"]


@pytest.mark.parametrize("on", [("RSC",), ("TRE",), ()])
def test_without_the_sdk_an_exit_is_not_asked_for(tmp_path: Path, on: tuple[str, ...]) -> None:
    assert verdicts(tmp_path, changed(ended(), protection=on)) == []
