"""A save that was broken off leaves a directory that is not renamed: it is never taken for a checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.plan.job_effect import DEATH, STORAGE_FULL, STORAGE_GONE
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import FAULT, SAVED, GoodRun
from tests.unit.checks.judging import Judge, said

DONE = f"ttp_saved_checkpoints-step_{SAVED}"
LEFT = f"{DONE}_tmp"
LEAVES = "an interrupted save leaves its directory under its temporary name"
EXPECTED = "the files of an interrupted save are not loaded as a checkpoint"


@pytest.fixture
def broken_off(run: GoodRun) -> GoodRun:
    """The plan says that nothing is saved; the save has ended in the middle of a file."""
    run.replan(mechanism="none", checkpoint=None)
    run.without_resume()
    for saved in run.saved.values():
        saved.path = saved.path.replace(DONE, LEFT).replace(".ckpt", ".tmp")
        saved.keep = 100
    return run


def test_a_directory_that_was_not_renamed_counts_as_nothing(broken_off: GoodRun, judged: Judge) -> None:
    judgement = judged(broken_off)
    (left,) = said(judgement, "checkpoint", "pass", EXPECTED)
    assert f"job/checkpoints/{LEFT}" in left.seen and f"{LEFT}/rank_0/ttp_rank_0-1_5.tmp" in left.seen
    assert said(judgement, "checkpoint", "pass", "no end-of-life checkpoint is finished | there is none")
    assert [
        finding for finding in judgement.findings if finding.check == "checkpoint" and finding.verdict != "pass"
    ] == []
    assert not [finding for finding in judgement.findings if finding.check == "hygiene" and LEFT in finding.seen]


def test_half_a_file_in_a_renamed_directory_is_a_failure_whatever_the_plan(broken_off: GoodRun, judged: Judge) -> None:
    for saved in broken_off.saved.values():
        saved.path = saved.path.replace(LEFT, DONE).replace(".tmp", ".ckpt")
    assert said(judged(broken_off), "checkpoint", "fail", "rank 0 has one: ttp_rank_0-1_5.ckpt")


IN_SAVE = PlannedFault(
    "in-save", "kill", (1,), {"handler": "save_ckpt", "phase": "checkpoint.write", "after": FAULT}, {}, None, 9, DEATH
)
FULL = PlannedFault("full", "disk-full", (0,), {"step": 3, "phase": "step.begin"}, {}, None, 9, STORAGE_FULL)
IN_RENAME = replace(IN_SAVE, trigger={"any": [], "all": [{"handler": "rename"}]})
OTHERS = (
    replace(FULL, effect=STORAGE_GONE),
    replace(IN_SAVE, trigger={"handler": "save_ckpt"}),
    replace(IN_SAVE, trigger={"handler": "save_ckpt", "phase": "checkpoint.begin"}),
)


def broken_by(run: GoodRun, fault: PlannedFault) -> None:
    run.replan(faults=(*run.plan.faults, fault), recoveries=(Recovery("TTP", (FAULT,), SAVED, succeeds=False),))


@pytest.mark.parametrize("fault", [IN_SAVE, FULL, IN_RENAME])
def test_a_save_that_is_broken_off_leaves_its_directory(
    broken_off: GoodRun, judged: Judge, fault: PlannedFault
) -> None:
    broken_by(broken_off, fault)
    assert said(judged(broken_off), "checkpoint", "pass", f"{LEAVES} | {LEFT}")


@pytest.mark.parametrize("fault", [IN_SAVE, FULL, IN_RENAME])
def test_a_directory_that_is_gone_is_a_failure(broken_off: GoodRun, judged: Judge, fault: PlannedFault) -> None:
    broken_by(broken_off, fault)
    broken_off.saved.clear()
    # That the second fault was made is recorded by nobody here, so what fails is in doubt.
    (seen,) = said(judged(broken_off), "checkpoint", "unknown", LEAVES)
    assert seen.seen.startswith(f"rank 0 began to save in {LEFT}, which is not there (a failure if not for")


@pytest.mark.parametrize("fault", [IN_SAVE, FULL, IN_RENAME])
def test_without_a_record_of_the_save_what_it_left_is_unknown(
    broken_off: GoodRun, judged: Judge, fault: PlannedFault
) -> None:
    broken_by(broken_off, fault)
    broken_off.saved.clear()
    broken_off.drop("checkpoint.begin")
    assert said(judged(broken_off), "checkpoint", "unknown", f"{LEAVES} | no rank has recorded that it began one")


@pytest.mark.parametrize("fault", OTHERS)
def test_where_no_directory_need_have_been_made_none_is_asked_for(
    broken_off: GoodRun, judged: Judge, fault: PlannedFault
) -> None:
    broken_by(broken_off, fault)
    broken_off.saved.clear()
    assert not [finding for finding in judged(broken_off).findings if finding.expected == LEAVES]


def test_a_storage_that_refuses_the_directory_itself_leaves_none(broken_off: GoodRun, judged: Judge) -> None:
    broken_by(broken_off, FULL)
    broken_off.saved.clear()
    broken_off.drop("checkpoint.begin")
    for record in broken_off.events("handler.exit", name="save_ckpt"):
        record.update(ok=False, error=f"[Errno 28] No space left on device: '/job/checkpoints/{LEFT}'")
    assert not [finding for finding in judged(broken_off).findings if finding.expected == LEAVES]


@pytest.mark.parametrize("part", [0.0, 0.25, 0.5, 0.75, 0.99])
@pytest.mark.parametrize("boundary", [False, True], ids=["inside", "between parameters"])
def test_half_a_file_where_one_was_planned_is_a_failure(
    part: float, boundary: bool, run: GoodRun, judged: Judge
) -> None:
    """Also one that ends where a parameter does, so that what is left of it can be read."""
    content = run.saved[1].content()
    run.saved[1].keep = int(part * len(content))
    if boundary:
        # Every parameter is one field of the file: a tag, its length, its bytes. The lengths here take one or two.
        end = 0
        while (size := _size_of_entry(content, end)) + end <= run.saved[1].keep:
            end += size
        run.saved[1].keep = end
    assert said(judged(run), "checkpoint", "fail", "rank 1's file")


def _size_of_entry(content: bytes, start: int) -> int:
    length, shift, at = 0, 0, start + 1
    while True:
        length |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 0x80:
            return at - start + length


@pytest.mark.parametrize("name", [f"{LEFT}/rank_0/ttp_rank_0-1_5.ckpt", f"{DONE}/rank_0/ttp_rank_0-1_5.tmp"])
def test_whoever_loads_it_is_a_failure(name: str, run: GoodRun, judged: Judge) -> None:
    run.only("load.begin", attempt="resume", rank=3)["path"] = f"checkpoints/{name}"
    assert said(judged(run), "checkpoint", "fail", f"{EXPECTED} | rank 3 loads checkpoints/{name}")


def test_where_everything_was_finished_nothing_is_said_of_it(run: GoodRun, judged: Judge) -> None:
    assert [finding for finding in judged(run).findings if finding.expected == EXPECTED] == []


RENAMED = "temporary directories are renamed when all have saved"
PERIODIC = "job/checkpoints/rank_1/CKP_rank_1-1_4.tmp"


@pytest.mark.parametrize("kind", ["periodic", "end-of-life"])
def test_of_names_for_both_kinds_only_what_was_begun_as_end_of_life_is_its_remainder(
    kind: str, run: GoodRun, judged: Judge
) -> None:
    """MindFormers calls both kinds of a rank's saves alike."""
    run.others[PERIODIC] = b"\x0a"
    run.add(
        "train-rank_1",
        {
            **run.only("checkpoint.begin", rank=1),
            "kind": kind,
            "path": f"/elsewhere/{PERIODIC}".replace(".tmp", ".safetensors"),
        },
    )
    judgement = judged(run)  # all ranks have saved, and this one began a save more
    verdict = "pass" if kind == "periodic" else "fail"
    assert said(judgement, "checkpoint", verdict, RENAMED)
    if kind == "periodic":
        assert said(judgement, "checkpoint", "pass", f"{EXPECTED} | unfinished and loaded by no rank: {PERIODIC}")
        assert [
            finding for finding in judgement.findings if finding.check == "checkpoint" and finding.verdict != "pass"
        ] == []
