"""Part of check ``mechanism``: an end-of-life checkpoint was saved once and renamed, and the ranks have exited."""

from __future__ import annotations

from collections import Counter

from chaos.evidence.checkpoints.saved import end_of_life, may_be_end_of_life, outside, unowned
from chaos.evidence.facts import TRAIN, error_text, places, ranks_text, text_list
from chaos.evidence.mechanisms_seen import mechanisms
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.failed_attempt import judge_tried
from chaos.mechanisms.failed_save import judge_refused
from chaos.mechanisms.order import UNDECIDED, suspicious
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.ttp.phases import phase_ends

HANDLERS = ("stop", "save_ckpt", "rename", "exit")
EXPECTED = "TTP saves an end-of-life checkpoint once, renames it, and the ranks exit"


def judge(case: Case) -> None:
    """Judge the save and the rename."""
    if not case.recovery.succeeds:
        judge_tried(case, ("save_ckpt", "rename"))
        judge_refused(case, ("save_ckpt", "rename"))
        return
    history, collector = case.history, case.collector
    evidence = mechanisms(history, case.artifacts, TRAIN).evidence.get("TTP", [])
    if not evidence:
        _judge_silence(case)
        return
    _judge_handlers(case)
    exited = {event.rank for event in history.select("rank.exit", attempt=TRAIN)}
    missing = [rank for rank in range(case.plan.layout.ranks) if rank not in exited]
    if missing:
        collector.unknown(EXPECTED, f"no exit of {ranks_text(missing)} was recorded", case.line, data=about(missing))
    signs = text_list(dict.fromkeys(sign for sign, _ in evidence))
    collector.settle(EXPECTED, signs, case.line, *(where for _, where in evidence[:3]))


def _judge_silence(case: Case) -> None:
    collector = case.collector
    heard = bool(case.logged()) or bool(case.history.select("handler.enter", attempt=TRAIN))
    kept = end_of_life(case.history, case.artifacts) or unowned(case.history, case.artifacts, "end-of-life")
    if not kept:
        collector.fail(
            EXPECTED,
            "it did not act: no handler was called, and there is no checkpoint",
            case.line,
            data=about(case.window.hit),
        )
    elif heard:
        collector.fail(
            EXPECTED,
            "no handler or log line shows a save, though others were recorded",
            case.line,
            data=about(case.window.hit),
        )
    else:
        collector.unknown(EXPECTED, "there is a checkpoint, but neither a handler's call nor a log line", case.line)
    collector.close()


def _judge_handlers(case: Case) -> None:
    history, collector, line = case.history, case.collector, case.line
    saves = history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    for rank, times in Counter(save.rank for save in saves).items():
        if times > 1:
            twice = [save for save in saves if save.rank == rank]
            collector.fail(
                EXPECTED, f"rank {rank} was told to save {times} times", line, *places(twice), data=about(rank)
            )
    renames = history.select("handler.enter", attempt=TRAIN, name="rename")
    if len(renames) > 1:
        collector.fail(
            EXPECTED,
            f"renamed {len(renames)} times",
            line,
            *places(renames),
            data=about((event.rank for event in renames if event.rank is not None), expected=1, seen=len(renames)),
        )
    logged_renames = [event for event in case.logged() if event.kind == "ttp.renamed"]
    if len(logged_renames) > 1:
        sources = (event.source for event in logged_renames)
        collector.fail(
            EXPECTED,
            f"renamed {len(logged_renames)} times by the SDK's log",
            line,
            *sources,
            data=about(file=logged_renames[0].file, expected=1, seen=len(logged_renames)),
        )
    for event in case.window.of(history.select("handler.exit", attempt=TRAIN, ok=False)):
        if case.window.tried and event.data.get("name") not in ("save_ckpt", "rename", "exit"):
            continue  # it belongs to a mechanism that was planned to fail
        observation = f"handler {event.data.get('name')} failed on rank {event.rank}: {error_text(event)}"
        collector.fail(EXPECTED, observation, line, event.source, data=about(event.rank))
    _judge_order(case, renames)
    for name in ("save_ckpt", "rename"):
        entered = history.select("handler.enter", attempt=TRAIN, name=name)
        left = {event.rank for event in history.select("handler.exit", attempt=TRAIN, name=name)}
        for event in entered:
            if event.rank not in left:
                collector.unknown(
                    EXPECTED,
                    f"handler {name} of rank {event.rank} was called and never returned",
                    event.source,
                    data=about(event.rank),
                )
        for event in history.select("handler.exit", attempt=TRAIN, name=name):
            if event.rank not in {enter.rank for enter in entered}:
                observation = f"handler {name} of rank {event.rank} returned, and no call of it is recorded"
                collector.unknown(EXPECTED, observation, event.source, data=about(event.rank))
            if not isinstance(event.data.get("ok"), bool):
                collector.unknown(
                    EXPECTED,
                    f"how handler {name} ended on rank {event.rank} is not recorded",
                    event.source,
                    data=about(event.rank),
                )
    _judge_lines(case, "save_ckpt", "save", "ttp.dump_begin")
    _judge_lines(case, "rename", "rename", "ttp.renamed")


def _judge_lines(case: Case, handler: str, what: str, kind: str) -> None:
    """Judge the calls by the SDK's log where none is recorded; the file is then the other witness."""
    collector = case.collector
    if case.history.select("handler.enter", attempt=TRAIN, name=handler):
        return
    lines = [event.source for event in case.logged() if event.kind == kind][:3]
    if not lines:
        collector.unknown(EXPECTED, f"nothing shows the {what}", case.line)
    elif case.records_calls(handler):
        observation = f"the SDK's log shows the {what}, but no rank has recorded a call of its handler {handler}"
        collector.fail(EXPECTED, observation, case.line, *lines, data=about(file=lines[0].rpartition(":")[0]))
    elif outside(case.history, case.artifacts, "end-of-life"):
        observation = f"only the SDK's log shows the {what}: the saved files are not in the run's directory"
        collector.unknown(EXPECTED, observation, case.line, *lines)
    elif not may_be_end_of_life(case.history, case.artifacts):
        observation = f"the SDK's log shows the {what}, but there is no finished end-of-life checkpoint"
        collector.fail(EXPECTED, observation, case.line, *lines, data=about(file=lines[0].rpartition(":")[0]))


def _judge_order(case: Case, renames: list[Event]) -> None:
    """Judge the order of save and rename.

    A directory that gets its name while a rank still writes in it looks like a finished checkpoint, and is none.
    """
    saved = case.history.select("handler.exit", attempt=TRAIN, name="save_ckpt")
    pair = suspicious(renames, saved)
    if pair is None:
        return
    first, last, sure = pair
    if sure:
        observation = f"rank {first.rank} renamed before rank {last.rank} had saved"
        case.collector.fail(EXPECTED, observation, case.line, first.source, last.source, data=about(first.rank))
    else:
        observation = f"whether rank {last.rank} had saved when rank {first.rank} renamed{UNDECIDED}"
        case.collector.unknown(EXPECTED, observation, first.source, last.source, data=about(last.rank))


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=phase_ends, failures=frozenset({"ttp.dump_failed"}))
