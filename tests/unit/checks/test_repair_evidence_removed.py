"""No check passes an online repair when its evidence is missing or cannot be believed: it says unknown, and why."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.checks.judge import judge
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import GoodRun, Mutate, Record, record
from tests.kit.runs.repaired_run import STRUCK, TEXTS, hcce_run, place_of, twice_run, uce_run
from tests.unit.checks.judging import Judge, said


def evidence(run: GoodRun) -> Record:
    (one,) = run.only("fault.landed")["evidence"]
    assert isinstance(one, dict)
    return one


def raised(run: GoodRun) -> Record:
    return run.only("fault.raised")


def second(run: GoodRun, event: str, rank: int) -> Record:
    return list(run.events(event, rank=rank))[1]


def drop_second(run: GoodRun, event: str, rank: int) -> None:
    gone = second(run, event, rank)
    for name, records in run.files.items():
        run.files[name] = [entry for entry in records if entry is not gone]


def without_log(run: GoodRun, *texts: str) -> None:
    run.log = [(at, line) for at, line in run.log if not any(text in line for text in texts)]


def early_state_only(run: GoodRun) -> None:
    """The controller's change to NORMAL is only that of its own start."""
    run.log = run.log[:1] + [(at, line) for at, line in run.log[1:] if "OP_NORMAL" not in line]


def no_handler_at_all(run: GoodRun) -> None:
    run.drop("handler.enter")
    run.drop("handler.exit")


def neither_handler_nor_log(run: GoodRun) -> None:
    no_handler_at_all(run)
    run.log.clear()


def ended_at_once(run: GoodRun) -> None:
    """Rank 1 is killed by another hand at the moment of the error."""
    records = run.files["train-rank_1-1001.jsonl"]
    del records[records.index(raised(run)) + 1 :]
    run.only("rank.exit", rank=1).update(signal=9, code=None, mono=raised(run)["mono"] + 10**6)


def began_otherwise(run: GoodRun) -> None:
    for rank in (0, 2):
        next(run.events("initial", rank=rank))["parameters"]["layer1.weight"] = "0" * 32


def other_baseline(run: GoodRun) -> None:
    assert run.baseline is not None
    for event in run.baseline["train-rank_2-502.jsonl"]:
        if event.get("step") == 3 and event["event"] == "digest":
            event["batch"] = "0" * 32


UNKNOWN: list[tuple[str, Mutate, str]] = [
    ("injection", lambda run: run.drop("fault.raised"), "rank 1's own history has no error that it raised"),
    ("injection", lambda run: raised(run).update(text=TEXTS["hcce"]), "rank 1 raised 'HCCEError error occurs"),
    (
        "injection",
        lambda run: evidence(run).pop("raised"),
        "the evidence for rank 1 says nothing about what was done to it",
    ),
    ("injection", lambda run: evidence(run).update(signal=9), "shows SIGKILL, not an error raised"),
    (
        "injection",
        lambda run: raised(run).update(step=STRUCK + 1),
        f"rank 1 raised it at step {STRUCK + 1}, phase forward",
    ),
    ("injection", lambda run: raised(run).update(phase="optimizer.update"), "phase optimizer.update"),
    ("injection", lambda run: raised(run).update(pid=4711), "has no error that it raised"),
    (
        "injection",
        lambda run: raised(run).update(mono=run.only("fault.injecting")["mono"] - 1),
        "rank 1 raised it before it was injected",
    ),
    (
        "injection",
        lambda run: run.only("fault.landed").update(mono=raised(run)["mono"] - 1),
        "the landing is recorded before rank 1 raised it",
    ),
    ("injection", ended_at_once, "rank 1 ended by SIGKILL at the moment of the error"),
    ("injection", lambda run: run.only("rank.exit", rank=1).update(mono=1), "rank 1 had ended before it raised it"),
    ("injection", lambda run: run.drop("barrier.reached"), "rank 1's own history has no barrier of this fault"),
    ("injection", lambda run: run.drop("fault.injecting"), "no record of the injection into rank 1"),
    ("mechanism", lambda run: run.drop("fault.injecting"), "no injection of fault uce-6 is recorded"),
    ("mechanism", lambda run: run.drop("fault.injecting"), "no injection of fault uce-6 is recorded"),
    (
        "mechanism",
        lambda run: run.replan(recoveries=(Recovery("UCE", ("other",), 5),)),
        "no injection of fault of a recovery is recorded",
    ),
    ("mechanism", no_handler_at_all, "the SDK's log shows a repair, but no call of a handler was recorded"),
    ("mechanism", neither_handler_nor_log, "there is neither a handler's call nor a log of the SDK"),
    ("mechanism", lambda run: run.drop("handler.exit", rank=3, name="clean"), "handler clean of rank 3 was called and"),
    ("mechanism", lambda run: run.drop("handler.exit", name="repair"), "handler repair of rank 1 was called and never"),
    ("mechanism", lambda run: run.only("handler.exit", rank=1, name="repair").pop("ok"), "how handler repair ended"),
    ("mechanism", lambda run: without_log(run, "REPAIR"), "0 repairs in its log"),
    ("mechanism", lambda run: run.drop("agent.start", rank=2), "no start of rank 2 was recorded"),
    ("mechanism", lambda run: run.drop("rank.found", rank=2), "no identification of rank 2 was recorded"),
    ("mechanism", lambda run: run.drop("rank.exit", rank=2), "no exit of rank 2 was recorded"),
    ("resume", lambda run: drop_second(run, "train.begin", 3), "rank 3 has recorded 0 beginnings of training after 1"),
    ("resume", lambda run: run.drop("train.begin"), "has recorded 0 beginnings of training"),
    ("resume", lambda run: second(run, "train.begin", 3).pop("initial_step"), "the step counter of rank 3 is not"),
    ("resume", lambda run: drop_second(run, "initial", 1), "no digests of rank 1 after recovery 1"),
    ("resume", lambda run: second(run, "initial", 1).update(parameters={}), "nothing to compare the state of rank 1"),
    ("resume", lambda run: run.drop("digest", rank=0), "no batch of rank 0 after the recovery can be compared"),
    ("resume", lambda run: run.drop("digest", rank=0, step=8), "no batch of rank 0 at step 8 was recorded"),
    (
        "resume",
        lambda run: run.only("digest", rank=0, step=8).update(batch=None),
        "the batch of rank 0 at step 8 was not",
    ),
    ("resume", lambda run: setattr(run, "baseline", None), "cannot be compared: there is no baseline history"),
    ("resume", began_otherwise, "rank 0 began with another layer1.weight than the baseline"),
    ("resume", other_baseline, "the batch of rank 2 at step 3, before any fault, differs from the baseline"),
    ("loss", lambda run: run.drop("digest", rank=2, step=STRUCK), f"no loss of rank 2 at step {STRUCK}"),
    (
        "loss",
        lambda run: run.only("digest", rank=2, step=12).update(parameters={}),
        "no parameter digests of rank 2 at",
    ),
    ("recovery", lambda run: run.log.clear(), "the controller's change to ABNORMAL is not in the SDK's logs"),
    ("recovery", lambda run: without_log(run, "ABNORMAL"), "the controller's change to ABNORMAL is not in the SDK's"),
    (
        "recovery",
        lambda run: without_log(run, "REPAIR", "clean ok"),
        "the end of stop and clean on all ranks is not in",
    ),
    ("recovery", early_state_only, "the controller's change to NORMAL is logged before the fault"),
    ("recovery", lambda run: drop_second(run, "train.begin", 0), "is recorded for 3 of 4 ranks"),
    ("hygiene", lambda run: run.drop("rank.exit", rank=2), "no exit status was recorded"),
    ("hygiene", lambda run: run.drop("launcher.exit"), "the launcher of attempt train exits with 0 | no exit status"),
    ("hygiene", lambda run: run.drop("fault.healed"), "has no record of being healed"),
    ("history", lambda run: run.drop_file("train-rank_3"), "no history of rank 3"),
]


@pytest.mark.parametrize(
    ("check", "spoil", "reason"), UNKNOWN, ids=[f"{check}-{number}" for number, (check, _, _) in enumerate(UNKNOWN, 1)]
)
def test_missing_evidence_is_unknown_and_says_why(judged: Judge, check: str, spoil: Mutate, reason: str) -> None:
    run = uce_run()
    spoil(run)
    judgement = judged(run)
    shown = [
        (finding.verdict, finding.check, finding.expected, finding.seen)
        for finding in judgement.findings
        if finding.verdict != "pass"
    ]
    assert said(judgement, check, "unknown", reason), shown
    assert judgement.verdict == "unknown", shown


def test_faults_in_another_order_than_planned_are_unknown(judged: Judge) -> None:
    run = twice_run()
    first, last = run.plan.response.recoveries
    run.replan(recoveries=(last, first))
    assert said(judged(run), "mechanism", "unknown", "the faults were not made in the order of the plan")


def test_without_proof_of_the_error_nobody_is_blamed(judged: Judge) -> None:
    run = uce_run()
    run.drop("fault.raised")
    run.add("train-rank_2", record(11.0, "handler.enter", name="exit", **place_of(2)))
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert said(judgement, "mechanism", "unknown", "a failure if not for the doubts of: injection")


_FOR_READERS = {"agent.cost", "attempt.end", "fault.armed", "launcher.found", "train.end"}


def _events(run: GoodRun) -> list[str]:
    return sorted({str(event["event"]) for records in run.files.values() for event in records} - _FOR_READERS)


@pytest.mark.parametrize(
    ("good", "name"),
    [
        pytest.param(good, name, id=f"{good.__name__}-{name}")
        for good in (uce_run, hcce_run)
        for name in sorted(_events(good()))
    ],
)
def test_no_pass_without_any_kind_of_event(judged: Judge, good: Callable[[], GoodRun], name: str) -> None:
    run = good()
    run.drop(name)
    assert judged(run).verdict != "pass"


@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("good", [uce_run, hcce_run])
def test_every_single_lost_line_is_noticed_and_nobody_is_blamed(
    tmp_path: Path, good: Callable[[], GoodRun], stride: int
) -> None:
    wrong = []
    number = 0
    whole = good()
    for name, records in whole.files.items():
        for line in range(len(records) - 1):
            number += 1
            if number % stride:
                continue
            run = copy.deepcopy(whole)
            lost = run.files[name].pop(line)
            for later, file in enumerate(run.files[name][line:], line + 1):
                file["seq"] = later
            verdict = judge(run.write(tmp_path / str(number))).verdict
            if verdict != "unknown":
                wrong.append((name, line, lost["event"], verdict))
    assert wrong == []
