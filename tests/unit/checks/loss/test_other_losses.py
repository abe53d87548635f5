"""Losses that only a reader of another package knows are judged as those of MindFormers' lines are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.base.registry import Registry
from chaos.checks.judge import Judgement
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import find_event, known
from chaos.store.baselines import copy_into
from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said
from tests.unit.checks.loss.test_by_log import LOSSES, SILENT, STEPS, Lines, line, logs_of_a_good_run, seen, silenced

TABLE = (
    known("train.step", "iteration", r"^iteration (?P<step>\d+) loss (?P<loss>\S+)( by rank (?P<rank>\d+))?$"),
    known("train.step", "iteration", r"^iteration (?P<step>\d+) without$"),
)
_OURS = re.compile(r"step:\[ *(?P<step>\d+)/ *\d+\], loss: (?P<loss>\S+),")


class OurReader(LogReader):
    """Of a program that no package but the test's knows."""

    name = "ours"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        return any(line.startswith("iteration ") for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        if line == "raise":
            raise RuntimeError("our reader raised")
        return find_event(TABLE, line, None, None)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, f"{__name__}:OurReader")


def install(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    ours = EntryPoint("ours", place, "chaos.readers")
    monkeypatch.setattr(
        "chaos.observe.logs.registered.registry", lambda _: Registry("readers", "reader", lambda _: [ours])
    )


def ours(text: str) -> str:
    match = _OURS.search(text)
    assert match is not None
    return f"iteration {match['step']} loss {match['loss']}"


def logs() -> Lines:
    """Those of a good run, in the form of the other program, with lines of others between them."""
    return {
        key: [text for one in lines for text in (ours(one), "[WARNING] whatever(1,2): something")]
        for key, lines in logs_of_a_good_run().items()
    }


@pytest.mark.usefixtures("installed")
def test_a_good_run_is_judged_by_what_the_reader_finds(run: GoodRun, judged: Judge) -> None:
    judgement = judged(silenced(run, logs()))
    assert [finding for finding in judgement.findings if finding.verdict == "fail"] == []
    (equal,) = said(judgement, "loss", "pass", LOSSES)
    assert "36 losses of 3 ranks are equal" in equal.seen
    assert said(judgement, "resume", "pass", "3 of them by their logs")


def test_without_the_reader_nothing_of_them_is_known(run: GoodRun, judged: Judge) -> None:
    judgement = judged(silenced(run, logs()))
    assert said(judgement, "loss", "pass", "fault-free") == []
    assert [finding for finding in judgement.findings if finding.verdict == "fail"] == []
    for rank in SILENT:
        assert said(judgement, "resume", "unknown", f"neither a record nor a log shows a step of rank {rank},")


def test_a_rank_that_trained_before_and_ends_no_step_after_the_resume_fails(run: GoodRun, judged: Judge) -> None:
    for name, records in run.files.items():
        run.files[name] = [
            record
            for record in records
            if record["event"] not in STEPS or (record.get("attempt"), record.get("rank")) != ("resume", 1)
        ]
    assert said(judged(run), "resume", "fail", "rank 1 ended no step")


def replaced(attempt: str, rank: int, step: int, *to: str) -> Callable[[Lines], None]:
    def change(of: Lines) -> None:
        lines = of[attempt, rank]
        (at,) = (place for place, text in enumerate(lines) if text.startswith(f"iteration {step} "))
        lines[at : at + 1] = to

    return change


def in_mindformers_form(of: Lines) -> None:
    of["resume", 3].insert(0, line(6, "0.358571"))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("change", "check", "verdict", "text"),
    [
        (replaced("resume", 3, 8, "iteration 8 loss 0.285557"), "loss", "fail", "worker_3.log:5"),
        (replaced("resume", 3, 8, "iteration 8 loss 0.285557"), "loss", "fail", "rank 3, step 8: loss 0.285557"),
        (replaced("resume", 0, 6, "iteration 6 loss nan"), "loss", "fail", "rank 0 prints loss nan at step 6"),
        (replaced("resume", 3, 8), "loss", "unknown", "for step 8 (1 in all)"),
        (replaced("baseline", 3, 8), "loss", "unknown", "for step 8 (1 in all)"),
        (replaced("resume", 3, 8, "iteration 8 without"), "loss", "unknown", "for step 8 (1 in all)"),
        (replaced("resume", 3, 8, "iteration 8 loss 0.285556 by rank 2"), "loss", "unknown", "for step 8 (1 in all)"),
        (replaced("resume", 3, 8, "iteration 8 loss a lot"), "loss", "unknown", "for step 8 (1 in all)"),
        (replaced("resume", 3, 8, "iteration 8 loss much"), "loss", "unknown", "gives 'much' as the loss of step 8"),
        (replaced("resume", 3, 8, "raise"), "loss", "unknown", "our reader raised"),
        (in_mindformers_form, "loss", "unknown", "(6 in all)"),
    ],
)
def test_what_it_finds_counts(
    run: GoodRun, judged: Judge, change: Callable[[Lines], None], check: str, verdict: str, text: str
) -> None:
    of = logs()
    change(of)
    judgement = judged(silenced(run, of))
    message = seen(judgement, check, verdict) + "".join(map(str, places(judgement, check, verdict)))
    assert text in message


def places(judgement: Judgement, check: str, verdict: str) -> list[str]:
    return [
        place
        for finding in judgement.findings
        if (finding.check, finding.verdict) == (check, verdict)
        for place in finding.where
    ]


@pytest.mark.parametrize("place", [f"{__name__}:NoSuchReader", "no_such_module:NoSuchReader", "builtins:str"])
def test_a_reader_that_cannot_be_loaded_takes_nothing_from_a_run_that_does_not_need_it(
    monkeypatch: pytest.MonkeyPatch, run: GoodRun, judged: Judge, tmp_path: Path, place: str
) -> None:
    install(monkeypatch, place)
    copy_into(run.write(tmp_path / "made"), tmp_path / "copy")
    assert judged(run).verdict == "pass"
    judgement = judged(silenced(run, logs()))
    assert "the reader 'ours' is registered as" in seen(judgement, "loss", "unknown")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "kept"),
    [("iteration 1 loss 2.5\n", True), ("iteration 1 loss much\n", True), ("raise\n", True), ("nothing\n", False)],
)
def test_the_baseline_keeps_the_logs_in_which_it_finds_any(tmp_path: Path, run: GoodRun, text: str, kept: bool) -> None:
    run.others["logs/train/worker_0.log"] = text.encode()
    run.write(tmp_path / "made")
    (tmp_path / "run").mkdir()
    copy_into(tmp_path / "made", tmp_path / "run")
    assert (tmp_path / "run" / "baseline" / "logs" / "train" / "worker_0.log").exists() == kept
