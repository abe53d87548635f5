"""No step is saved over the file of another one under a name that counts steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.checks.checkpoint.overwritten import EXPECTED, judge_overwritten
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History


def saved(path: str, step: int, mono: int, *, rank: int = 0) -> Event:
    data = {"kind": "periodic", "path": f"/there/run/job/{path}", "step": step}
    return Event("checkpoint.end", mono, mono, "agent", mono, "train", rank, 7 + rank, data)


def judged(run: Path, saves: list[Event], baseline: list[Event] | None = None) -> list[Finding]:
    found = Collector("checkpoint")
    artifacts = Artifacts(run, None if baseline is None else History(tuple(baseline)))
    judge_overwritten(History(tuple(saves)), artifacts, found)
    return found.findings()


NAMES = (
    "checkpoints/rank_0/mnist-1_3.ckpt",
    "output/rank_0/tiny_rank_0-1_3.safetensors",
    "output/rank_0/tiny_rank_0_1-1_3",
    "output/iteration_00000003/tiny-model-0000000-0000001",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_later_step_over_an_earlier_ones_file_fails_with_both(tmp_path: Path, name: str) -> None:
    (finding,) = judged(tmp_path, [saved(name, 3, 1), saved(name, 9, 5)])
    assert (finding.verdict, finding.expected) == ("fail", EXPECTED)
    assert finding.seen == f"rank 0 has saved step 9 over its file of step 3: job/{name}"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_step_may_be_saved_again_under_its_name(tmp_path: Path, name: str) -> None:
    saves = [saved(name, 3, 1), saved(name, 3, 5), saved(name.replace("3", "6"), 6, 6)]
    (finding,) = judged(tmp_path, saves)
    assert (finding.verdict, finding.seen) == ("pass", "2 files, each of one step")


def test_two_ranks_that_save_one_file_are_no_matter_of_this(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, [saved(NAMES[0], 3, 1), saved(NAMES[0], 6, 2, rank=1)])
    assert finding.verdict == "pass"


def test_a_name_that_counts_nothing_is_there_to_be_saved_anew(tmp_path: Path) -> None:
    assert judged(tmp_path, [saved("latest.ckpt", 3, 1), saved("latest.ckpt", 9, 5)]) == []


def test_a_job_that_does_so_without_faults_too_is_not_blamed(tmp_path: Path) -> None:
    saves = [saved(NAMES[0], 3, 1), saved(NAMES[0], 9, 5)]
    assert [finding.verdict for finding in judged(tmp_path, saves, saves)] == ["pass"]
    assert [finding.verdict for finding in judged(tmp_path, saves, saves[:1])] == ["fail"]


@pytest.mark.parametrize(
    ("evidence", "at", "verdict"),
    [
        ({"directory": "rank_0", "removed": ["mnist-1_3.ckpt"]}, 3, "pass"),
        ({"file": "checkpoints/rank_0/mnist-1_3.ckpt"}, 3, "pass"),
        ({"directory": "rank_1", "removed": ["mnist-1_3.ckpt"]}, 3, "fail"),
        ({"directory": "rank_0", "removed": ["mnist-1_6.ckpt"]}, 3, "fail"),
        ({"directory": "rank_0", "removed": "mnist-1_3.ckpt"}, 3, "fail"),
        ({"directory": "rank_0", "removed": ["mnist-1_3.ckpt"]}, 7, "fail"),
    ],
)
def test_a_file_that_a_fault_had_taken_away_is_not_saved_over(
    tmp_path: Path, evidence: dict[str, object], at: int, verdict: str
) -> None:
    landed = Event("fault.landed", at, at, "harness", at, "train", data={"fault": "disk", "evidence": [evidence]})
    (finding,) = judged(tmp_path, [saved(NAMES[0], 3, 1), landed, saved(NAMES[0], 9, 5)])
    assert finding.verdict == verdict


def test_without_a_step_in_the_record_nothing_is_said(tmp_path: Path) -> None:
    saves = [saved(NAMES[0], 3, 1), saved(NAMES[0], 9, 5)]
    for save in saves:
        del save.data["step"]
    assert judged(tmp_path, saves) == []
