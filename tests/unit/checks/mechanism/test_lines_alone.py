"""A line of the SDK's log that no other witness bears out is no recovery: a call, or a file, has to be there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks.judge import Judgement
from tests.kit.runs.good_run import RANKS, GoodRun, good_run, record
from tests.kit.runs.repaired_run import uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.unit.checks.judging import Judge, said

SAVES = b"2026-01-01 00:00:11.200000 99 info [99][PYH ttp_decorator.py:425] rank:0 begin to execute save checkpoint\n"
SAVED = "TTP saves an end-of-life checkpoint once"


def with_registrations(run: GoodRun, *names: str) -> GoodRun:
    """Every rank's agent stands round these handlers, and would have recorded a call."""
    for rank in range(RANKS):
        pid = next(run.events("agent.start", attempt="train", rank=rank))["pid"]
        place = {"attempt": "train", "rank": rank, "pid": pid}
        for name in names:
            run.add(f"train-rank_{rank}-{pid}", record(3.2, "sdk.registered", name=name, function="job.f", **place))
    return run


def without_calls(run: GoodRun, *names: str) -> GoodRun:
    for name, records in run.files.items():
        run.files[name] = [event for event in records if event.get("name") not in names or event["attempt"] != "train"]
    run.others["logs/train/ttp/ttp_log.log.99"] = SAVES
    return run


def by_lines(judgement: Judgement) -> set[str]:
    """The first words of what ``recovery`` rests on lines of a log alone."""
    return {
        finding.expected.split(" ≤ ")[0]
        for finding in judgement.findings
        if finding.check == "recovery" and finding.by_log
    }


def test_a_phase_whose_end_only_a_line_tells_says_so(judged: Judge) -> None:
    judgement = judged(good_run())
    assert by_lines(judgement) == {"detection", "stop"}, "one ends with a line, the other begins with it"
    for finding in said(judgement, "recovery", "pass", "detection ≤ "):
        assert finding.seen == "0.600 s, by lines of a log alone"
    assert by_lines(judged(uce_run())) == {"detection", "stop", "repair", "first step"}


def test_the_log_and_the_file_tell_of_a_rename(judged: Judge) -> None:
    assert said(judged(without_calls(good_run(), "rename")), "mechanism", "pass", SAVED)


@pytest.mark.parametrize(("handler", "what"), [("rename", "rename"), ("save_ckpt", "save")])
def test_a_line_without_a_file_is_no_rename(judged: Judge, handler: str, what: str) -> None:
    run = without_calls(good_run(), handler)
    run.saved.clear()
    words = f"the SDK's log shows the {what}, but there is no finished end-of-life checkpoint"
    assert said(judged(run), "mechanism", "fail", words)


@pytest.mark.parametrize(("handler", "what"), [("rename", "rename"), ("save_ckpt", "save")])
def test_a_line_that_no_agent_bears_out_fails(judged: Judge, handler: str, what: str) -> None:
    run = with_registrations(without_calls(good_run(), handler), handler)
    words = f"shows the {what}, but no rank has recorded a call of its handler {handler}"
    assert said(judged(run), "mechanism", "fail", words)


def test_a_line_of_a_save_that_went_elsewhere_is_unknown(judged: Judge) -> None:
    run = without_calls(good_run(), "rename")
    run.saved.clear()
    for event in run.events("checkpoint.end", kind="end-of-life"):
        event["path"] = f"/elsewhere/kept/{event['rank']}.ckpt"
    assert said(judged(run), "mechanism", "unknown", "only the SDK's log shows the rename")


def test_without_a_line_nothing_tells_of_a_rename(judged: Judge) -> None:
    run = without_calls(good_run(), "rename")
    run.log = [(at, text) for at, text in run.log if "rename" not in text]
    assert said(judged(run), "mechanism", "unknown", "nothing shows the rename")


CALLS = ("stop", "clean", "rebuild_group", "repair", "rollback")


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("made", [uce_run, replaced_run])
def test_a_repair_of_which_only_lines_tell_is_not_green(
    judged: Judge, made: Callable[[], GoodRun], recorded: bool
) -> None:
    run = without_calls(made(), *CALLS)
    if recorded:
        with_registrations(run, "stop")
    verdict = "fail" if recorded else "unknown"
    assert said(judged(run), "mechanism", verdict, "but no call of a handler was recorded")
