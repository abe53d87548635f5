"""A recovery that is to leave processes where they are leaves their pods; without a record of them it is unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.evidence.pods import pod_fates
from chaos.faults.cluster.rule import judge_kept_pods
from chaos.history.reader import read_history
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import GoodRun, good_run, record
from tests.kit.runs.repaired_run import Strike, repaired_run
from tests.kit.runs.replaced_run import AT, replaced_run
from tests.kit.runs.run_in_pods import FILE, in_pods, pod_of, replaced, restarted
from tests.unit.checks.judging import Judge, not_passed, said

LATER = AT + 1.0


def repaired() -> GoodRun:
    return repaired_run(Strike("uce"))


def ended(run: GoodRun, node: int, at: float) -> None:
    run.add(FILE, record(at, "pod.state", **pod_of(node, phase="Failed", exit=1)))


def going(run: GoodRun, node: int, at: float) -> None:
    run.add(FILE, record(at, "pod.state", **pod_of(node, deleting=True)))


def findings(run: GoodRun, directory: Path) -> list[Finding]:
    found = Collector("mechanism")
    judge_kept_pods(run.plan, read_history(run.write(directory) / "history"), found)
    return found.findings()


def verdicts(run: GoodRun, directory: Path) -> list[str]:
    return [finding.verdict for finding in findings(run, directory)]


@pytest.mark.parametrize("made", [repaired, replaced_run])
def test_a_recovery_in_place_leaves_the_pods_and_passes(judged: Judge, made: Callable[[], GoodRun]) -> None:
    judgement = judged(in_pods(made()))
    assert not_passed(judgement) == []
    assert said(judgement, "mechanism", "pass", "keeps the pods of nodes 0, 1")


@pytest.mark.parametrize("made", [repaired, replaced_run])
@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (replaced, "pod of node 0 was replaced: pod-0 (uid-0) on worker-0 → pod-0-b (uid-0-b) on worker-9"),
        (restarted, "pod of node 0 was started again in place: pod-0 (uid-0) on worker-0: 0 → 1 restarts"),
        (ended, "pod of node 0 ended: pod-0 (uid-0) on worker-0, and no other came"),
        (going, "pod of node 0 ended"),
    ],
)
def test_a_pod_that_is_not_left_as_it_was_is_a_silent_downgrade(
    judged: Judge, made: Callable[[], GoodRun], spoil: Callable[[GoodRun, int, float], None], text: str
) -> None:
    run = in_pods(made())
    spoil(run, 0, LATER)
    judgement = judged(run)
    assert judgement.verdict == "fail"
    (finding,) = said(judgement, "mechanism", "fail", text)
    assert any(place.startswith(f"history/{FILE}:") for place in finding.where)


def test_what_was_before_the_fault_is_not_held_against_the_recovery(tmp_path: Path) -> None:
    run = in_pods(replaced_run())
    replaced(run, 0, 3.0)
    assert verdicts(run, tmp_path / "run") == ["pass"]
    (fate, _) = pod_fates(run.plan, read_history(tmp_path / "run" / "history"))
    assert fate.before is not None and fate.before.uid == "uid-0-b"


def without_the_file(run: GoodRun) -> None:
    run.drop_file("kubernetes")


def without_the_pods(run: GoodRun) -> None:
    run.drop("pod.state")


def without_the_end(run: GoodRun) -> None:
    run.drop("kubernetes.followed")


def not_followed(run: GoodRun) -> None:
    run.add(FILE, record(LATER, "kubernetes.unfollowed", what="pods", why="403"))


def without_a_time(run: GoodRun) -> None:
    run.drop("fault.injecting")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (without_the_file, "does not show which pod was node 0"),
        (without_the_pods, "does not show which pod was node 0"),
        (without_the_end, "does not show that the pods were followed to the end"),
        (not_followed, "the pods were no longer followed: 403"),
        (without_a_time, "no injection of fault"),
    ],
)
def test_without_a_record_of_the_pods_it_is_unknown(
    tmp_path: Path, spoil: Callable[[GoodRun], None], text: str
) -> None:
    run = in_pods(replaced_run())
    spoil(run)
    found = findings(run, tmp_path / "run")
    assert {finding.verdict for finding in found} == {"unknown"}
    assert text in found[0].seen


@pytest.mark.parametrize(
    ("strategies", "nodes"), [(("recover",), "0"), (("recover", "recover-in-place"), "0, 1"), ((), "0")]
)
def test_arf_may_move_a_pod_of_which_no_rank_is_left_unless_it_restarts_in_place(
    tmp_path: Path, strategies: tuple[str, ...], nodes: str
) -> None:
    run = in_pods(replaced_run())
    (recovery,) = run.plan.response.recoveries
    moved = Recovery("ARF", recovery.faults, recovery.step, restarted=(2, 3), copied=(2, 3))
    run.replan(recoveries=(moved,), strategies=strategies)
    replaced(run, 1, LATER)
    found = findings(run, tmp_path / "run")
    assert [finding.expected for finding in found] == [f"recovery 1 by ARF keeps the pods of nodes {nodes}"]
    assert found[0].verdict == ("pass" if nodes == "0" else "fail")


def test_a_pod_that_the_fault_itself_takes_is_no_downgrade(tmp_path: Path) -> None:
    run = in_pods(replaced_run())
    (fault,) = run.plan.faults
    taken = PlannedFault(fault.id, "pod-delete", (2, 3), fault.trigger, {}, None, 14, DEATH)
    run.replan(faults=(taken,))
    replaced(run, 1, LATER)
    (finding,) = findings(run, tmp_path / "run")
    assert (finding.verdict, finding.expected) == ("pass", "recovery 1 by ARF keeps the pods of nodes 0")


def test_a_job_that_ends_and_is_started_again_keeps_no_pods_and_tells_of_them(tmp_path: Path) -> None:
    run = in_pods(good_run())
    replaced(run, 1, 11.0)
    assert findings(run, tmp_path / "run") == []
    entries: Any = [(fate.node, fate.what) for fate in pod_fates(run.plan, read_history(tmp_path / "run" / "history"))]
    assert entries == [(0, "untouched"), (1, "replaced")]


def test_nothing_is_said_of_a_job_that_ran_in_no_pods(tmp_path: Path) -> None:
    assert findings(replaced_run(), tmp_path / "run") == []
