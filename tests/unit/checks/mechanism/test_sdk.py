"""The ranks have the SDK that the report names; one that nobody recorded is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chaos.checks.mechanism.sdk import IMPORTED
from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said

SDK = "every rank uses"
VENDORS = "/opt/lib/python3.11/site-packages/mindio_ttp/framework_ttp/__init__.py"

Mutate = Callable[[GoodRun], Any]


def with_the_vendors(run: GoodRun) -> None:
    run.only("run.start")["sdk"] = "vendor"
    for record in run.events(IMPORTED):
        record["file"] = VENDORS


def by_logs_alone(run: GoodRun) -> None:
    for records in run.files.values():
        records[:] = [record for record in records if record["event"] != "step.begin"]


@pytest.mark.parametrize("make", [lambda run: None, with_the_vendors], ids=["standin", "vendor"])
def test_the_sdk_that_the_report_names_passes(run: GoodRun, judged: Judge, make: Mutate) -> None:
    make(run)
    judgement = judged(run)
    assert said(judgement, "mechanism", "pass", f"{SDK} the ") and judgement.verdict == "pass"


@pytest.mark.parametrize(("make", "file"), [(lambda run: None, VENDORS), (with_the_vendors, None)])
def test_another_sdk_in_one_rank_fails_and_is_shown_without_this_machines_paths(
    run: GoodRun, judged: Judge, make: Mutate, file: str | None
) -> None:
    own = run.only(IMPORTED, attempt="resume", rank=1)["file"]
    make(run)
    run.only(IMPORTED, attempt="resume", rank=1)["file"] = file or own
    (finding,) = said(judged(run), "mechanism", "fail", f"{SDK} the ")
    assert finding.seen.startswith("rank 1 has imported …/")
    assert "/elsewhere/" not in finding.seen and "/opt/" not in finding.seen


UNKNOWN: list[tuple[Mutate, str]] = [
    (lambda run: run.only("run.start").pop("sdk"), "has not recorded which SDK it used"),
    (lambda run: run.only("run.start").update(sdk="another"), "has not recorded which SDK it used"),
    (
        lambda run: run.drop(IMPORTED, attempt="train", rank=2),
        "no import of the SDK by rank 2 is recorded in attempt train",
    ),
    (lambda run: run.drop(IMPORTED, attempt="resume"), "by ranks 0-3 is recorded in attempt resume"),
    (lambda run: run.drop(IMPORTED), "no rank has recorded an import of the SDK"),
    (
        lambda run: run.only(IMPORTED, attempt="train", rank=0).update(file=None),
        "rank 0 has not recorded the path of the SDK",
    ),
    (lambda run: run.only(IMPORTED, attempt="train", rank=3).update(pid=1), "by rank 3 is recorded in attempt train"),
]


@pytest.mark.parametrize(("spoil", "text"), UNKNOWN)
def test_an_import_that_nobody_recorded_is_unknown(run: GoodRun, judged: Judge, spoil: Mutate, text: str) -> None:
    spoil(run)
    assert said(judged(run), "mechanism", "unknown", text)


@pytest.mark.parametrize(("attempt", "rank", "named"), [("train", 1, True), ("resume", 2, True), ("train", 2, False)])
def test_where_agents_have_recorded_no_steps_each_rank_that_no_fault_hits_has_recorded_its_import(
    run: GoodRun, judged: Judge, attempt: str, rank: int, named: bool
) -> None:
    by_logs_alone(run)
    assert said(judged(run), "mechanism", "pass", SDK)
    run.drop(IMPORTED, attempt=attempt, rank=rank)
    text = f"no import of the SDK by rank {rank} is recorded in attempt {attempt}"
    assert bool(said(judged(run), "mechanism", "unknown", text)) is named


def test_mechanisms_that_need_no_sdk_are_not_asked_for_one(run: GoodRun, judged: Judge) -> None:
    run.replan(protection=("TRE", "RSC"))
    run.drop(IMPORTED)
    assert not [finding for finding in judged(run).findings if "every rank uses" in finding.expected]
