"""Check ``mechanism``: the planned mechanism acted, once, and no other did."""

from __future__ import annotations

from collections import Counter

from chaos.checks.acted import TTP, Acted, mechanisms
from chaos.checks.artifacts import Artifacts
from chaos.checks.collect import Collector
from chaos.checks.facts import RESUME, TRAIN, places, processes, ranks_text, text_list
from chaos.checks.finding import Finding
from chaos.checks.online import repairs_online
from chaos.checks.repaired import judge_repaired
from chaos.checks.saved import end_of_life
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "mechanism"
JUDGED = (TTP, "none", None)
"""Mechanisms that this file has rules for; those of online repairs are in chaos.checks.repaired."""


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge which mechanism acted in the faulted launch, and that none had to act after the resume."""
    found = Collector(NAME)
    if repairs_online(plan):
        judge_repaired(plan, history, artifacts, found)
        return found.findings()
    if plan.mechanism not in JUDGED:
        found.unknown(f"{plan.mechanism} acts, and no other", f"there is no rule by which to tell {plan.mechanism}")
        return found.findings()
    acted = mechanisms(history, artifacts, TRAIN)
    if not acted.listened:
        found.unknown(
            "every mechanism that acts is seen", "neither an agent nor the SDK has recorded anything", "history"
        )
    _judge_others(plan, acted, found)
    _judge_same_processes(plan, history, found)
    if plan.mechanism == TTP:
        _judge_ttp(plan, history, artifacts, acted, found)
    else:
        found.close()
    _judge_resume(plan, history, artifacts, found)
    return found.findings()


def _line(plan: Plan) -> str:
    line = plan.lines.get("mechanism")
    return f"scenario.yaml:{line}" if line else ""


def _alone(plan: Plan) -> str:
    return f"no mechanism but {TTP} acts" if plan.mechanism == TTP else "no mechanism acts"


def _judge_others(plan: Plan, acted: Acted, found: Collector) -> None:
    expected = _alone(plan)
    for mechanism, evidence in acted.evidence.items():
        if mechanism != plan.mechanism:
            signs = text_list(dict.fromkeys(seen for seen, _ in evidence))
            found.fail(expected, f"{mechanism} acted: {signs}", _line(plan), *(where for _, where in evidence[:5]))


def _judge_same_processes(plan: Plan, history: History, found: Collector) -> None:
    """No rank is started a second time within a launch: that would be rescheduling."""
    for attempt in (TRAIN, RESUME):
        for rank, pids in processes(history, attempt).items():
            if len(pids) > 1:
                starts = history.select("agent.start", attempt=attempt, rank=rank)
                seen = f"rank {rank} was started again in attempt {attempt}: processes {text_list(pids)}"
                found.fail("no rank is started again within a launch", seen, _line(plan), *places(starts))
    found.settle(_alone(plan), "no sign of another", _line(plan))


def _judge_ttp(plan: Plan, history: History, artifacts: Artifacts, acted: Acted, found: Collector) -> None:
    expected = "TTP saves an end-of-life checkpoint once, renames it, and the ranks exit"
    evidence = acted.evidence.get(TTP, [])
    if not evidence:
        _judge_silence(plan, history, artifacts, acted, found, expected)
        return
    _judge_handlers(plan, history, artifacts, found, expected)
    exited = {one.rank for one in history.select("rank.exit", attempt=TRAIN)}
    missing = [rank for rank in range(plan.ranks) if rank not in exited]
    if missing:
        found.unknown(expected, f"no exit of {ranks_text(missing)} was recorded", _line(plan))
    signs = text_list(dict.fromkeys(seen for seen, _ in evidence))
    found.settle(expected, signs, _line(plan), *(where for _, where in evidence[:3]))


def _judge_silence(
    plan: Plan, history: History, artifacts: Artifacts, acted: Acted, found: Collector, expected: str
) -> None:
    heard = bool(artifacts.sdk_events(TRAIN)) or bool(history.select("handler.enter", attempt=TRAIN))
    if not end_of_life(history, artifacts):
        found.fail(expected, "it did not act: no handler was called, and there is no checkpoint", _line(plan))
    elif heard:
        found.fail(expected, "no handler or log line tells of a save, though others were recorded", _line(plan))
    else:
        found.unknown(expected, "there is a checkpoint, but neither a handler's call nor a log line", _line(plan))
    found.close()


def _judge_handlers(plan: Plan, history: History, artifacts: Artifacts, found: Collector, expected: str) -> None:
    saves = history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    for rank, times in Counter(save.rank for save in saves).items():
        if times > 1:
            twice = [save for save in saves if save.rank == rank]
            found.fail(expected, f"rank {rank} was told to save {times} times", _line(plan), *places(twice))
    renames = history.select("handler.enter", attempt=TRAIN, name="rename")
    if len(renames) > 1:
        found.fail(expected, f"renamed {len(renames)} times", _line(plan), *places(renames))
    logged_renames = [event for event in artifacts.sdk_events(TRAIN) if event.kind == "ttp.renamed"]
    if len(logged_renames) > 1:
        sources = (event.source for event in logged_renames)
        found.fail(expected, f"renamed {len(logged_renames)} times by the SDK's log", _line(plan), *sources)
    for one in history.select("handler.exit", attempt=TRAIN, ok=False):
        seen = f"handler {one.data.get('name')} failed on rank {one.rank}: {one.data.get('error', 'no reason given')}"
        found.fail(expected, seen, _line(plan), one.source)
    for name in ("save_ckpt", "rename"):
        entered = history.select("handler.enter", attempt=TRAIN, name=name)
        left = {one.rank for one in history.select("handler.exit", attempt=TRAIN, name=name)}
        for one in entered:
            if one.rank not in left:
                found.unknown(expected, f"handler {name} of rank {one.rank} was called and never returned", one.source)
    logged = {event.kind for event in artifacts.sdk_events(TRAIN)}
    if not saves and "ttp.dump_begin" not in logged:
        found.unknown(expected, "nothing tells of a save", _line(plan))
    if not renames and "ttp.renamed" not in logged:
        found.unknown(expected, "nothing tells of the rename", _line(plan))


def _judge_resume(plan: Plan, history: History, artifacts: Artifacts, found: Collector) -> None:
    if not plan.resumes:
        return
    expected = "no mechanism acts after the resume"
    acted = mechanisms(history, artifacts, RESUME)
    for mechanism, evidence in acted.evidence.items():
        signs = text_list(dict.fromkeys(seen for seen, _ in evidence))
        found.fail(expected, f"{mechanism} acted: {signs}", *(where for _, where in evidence[:5]))
    if not acted.listened:
        found.unknown(expected, "neither an agent nor the SDK has recorded anything in attempt resume")
    found.settle(expected, "none did")
