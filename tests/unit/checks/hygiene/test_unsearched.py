"""Where a job has left what cannot be searched, no check says that there is nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.walking import TooDeep
from chaos.checks.judge import judge
from chaos.evidence.artifacts import Artifacts
from chaos.observe.checkpoints.group_info import find_group_infos
from chaos.observe.checkpoints.layout import find_checkpoints, find_temporary_directories
from chaos.observe.checkpoints.mindformers_layout import find_iterations, find_trackers
from chaos.observe.checkpoints.norm_record import find_norm_records
from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import said
from tests.unit.conftest import MakeDeep

DEEP = "job: has more than 256 levels of directories below"
SEARCHED = "all that the job has left can be searched"
SURELY = ("checkpoint", "resume", "consistency", "hygiene")
"""Checks that look for files in every run."""
SEARCHES: tuple[Callable[[Path], object], ...] = (
    find_checkpoints,
    find_temporary_directories,
    find_iterations,
    find_trackers,
    find_group_infos,
    find_norm_records,
)


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the job that this user cannot read."""
    path = tmp_path / "run" / "job" / "closed"
    path.mkdir(parents=True)
    scandir = os.scandir

    def refuse(place: str) -> object:
        if place == str(path):
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    return path


def test_a_search_that_has_not_seen_all_raises(tmp_path: Path, make_deep: MakeDeep) -> None:
    job = make_deep(tmp_path / "job")
    for search in SEARCHES:
        with pytest.raises(TooDeep, match=DEEP):
            search(job)


@pytest.mark.parametrize("search", SEARCHES)
def test_one_that_meets_a_directory_it_cannot_read_raises_too(search: Callable[[Path], object], closed: Path) -> None:
    with pytest.raises(PermissionError, match="closed"):
        search(closed.parent)


def test_a_run_whose_job_left_a_very_deep_directory_is_unknown(
    run: GoodRun, tmp_path: Path, make_deep: MakeDeep
) -> None:
    place = run.write(tmp_path / "run")
    assert judge(place).verdict == "pass"
    make_deep(place / "job" / "deep")
    judgement = judge(place)
    assert judgement.verdict == "unknown"
    assert {finding.verdict for finding in judgement.findings} == {"pass", "unknown"}
    searching = ("checkpoint", "resume", "loss", "consistency", "mechanism", "hygiene")
    assert {finding.check for finding in judgement.findings if finding.verdict == "unknown"} <= set(searching)
    assert all(said(judgement, check, "unknown", f"{SEARCHED} | not searched: {DEEP}") for check in SURELY)
    assert all(DEEP in finding.seen for finding in judgement.findings if finding.verdict == "unknown")


def test_a_run_whose_job_left_a_directory_that_cannot_be_read_is_unknown(run: GoodRun, closed: Path) -> None:
    judgement = judge(run.write(closed.parents[1]))
    assert judgement.verdict == "unknown"
    for check in SURELY:
        assert said(judgement, check, "unknown", f"{SEARCHED} | not searched: job/closed: Permission denied")


def test_what_is_found_beside_it_is_still_a_failure(run: GoodRun, closed: Path) -> None:
    place = run.write(closed.parents[1])
    (place / "job" / "a.tmp").touch()
    *_, damaged = sorted((place / "job").rglob("*.ckpt"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    judgement = judge(place)
    assert said(judgement, "hygiene", "fail", "unfinished files: job/a.tmp")
    assert said(judgement, "checkpoint", "fail", "is damaged at byte") and judgement.verdict == "fail"


def test_what_was_not_searched_when_the_run_ended_is_unknown(run: GoodRun, tmp_path: Path) -> None:
    run.only("hygiene")["unsearched"] = ["/elsewhere/job: has more than 256 levels of directories below"]
    judgement = judge(run.write(tmp_path / "run"))
    assert judgement.verdict == "unknown" and said(judgement, "hygiene", "unknown", "not searched when the run ended")


def test_of_logs_that_cannot_all_be_searched_it_is_told(tmp_path: Path, make_deep: MakeDeep) -> None:
    logs = tmp_path / "logs" / "train"
    make_deep(logs / "deep")
    (logs / "worker_0.log").write_text("hit")
    artifacts = Artifacts(tmp_path, None)
    assert not artifacts.log_contains("train", "absent", 0)
    assert artifacts.take_unseen() == ["logs/train: has more than 256 levels of directories below"]
    assert artifacts.take_unseen() == []


@pytest.mark.parametrize("unsearched", [5, "job", None, [5]])
def test_an_odd_record_of_what_was_not_searched_is_unknown(run: GoodRun, tmp_path: Path, unsearched: object) -> None:
    run.only("hygiene")["unsearched"] = unsearched
    judgement = judge(run.write(tmp_path / "run"))
    assert judgement.verdict == "unknown" and said(judgement, "hygiene", "unknown", "not searched when the run ended")
