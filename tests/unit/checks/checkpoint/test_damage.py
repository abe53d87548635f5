"""Damage to a checkpoint is believed with evidence only, and whoever goes on from it is blamed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.checkpoints.damage import loads_made
from chaos.history.reader import read_history
from chaos.plan.job_effect import DAMAGED, RECORD
from chaos.plan.parts.resume import PlannedRestore
from tests.kit.runs.damaged_run import AFTER, BEFORE, FILE, RENAMED, damaged_run, evidence
from tests.kit.runs.good_run import SAVED, VICTIM, GoodRun
from tests.kit.runs.restored_run import HOLDERS, LOSS, slices_of
from tests.unit.checks.judging import Judge, said


def loads(run: GoodRun, rank: int, path: str) -> None:
    for event in ("load.begin", "load.end"):
        run.only(event, rank=rank)["path"] = path


@pytest.mark.parametrize("renamed", [False, True])
def test_the_good_run_passes(judged: Judge, renamed: bool) -> None:
    judgement = judged(damaged_run(renamed=renamed))
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    assert said(judgement, "injection", "pass", "proven by the digests of the file before and after")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"after": BEFORE}, "has the same content as before"),
        ({"after": None}, "the digests of rank 2's file before and after are not in the evidence"),
        ({"before": "short"}, "the digests of rank 2's file"),
        ({"file": f"rank_0/sliced-1_{SAVED}.ckpt"}, "rank 2's own history has no save of rank_0/"),
        ({"file": None}, "rank 2's own history has no save"),
        ({"step": SAVED - 1}, f"file of step {SAVED - 1} was hit, not that of step {SAVED}"),
    ],
)
def test_without_proof_nobody_is_blamed(judged: Judge, change: dict[str, Any], text: str) -> None:
    run = damaged_run()
    evidence(run).update(change)
    loads(run, VICTIM, slices_of(VICTIM))
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert said(judgement, "injection", "unknown", text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"renamed": None}, "no new name of rank 2's file"),
        ({"after": AFTER}, "has another content than before"),
    ],
)
def test_a_renaming_without_proof_is_unknown(judged: Judge, change: dict[str, Any], text: str) -> None:
    run = damaged_run(renamed=True)
    evidence(run).update(change)
    assert said(judged(run), "injection", "unknown", text)


def test_a_rank_that_goes_on_from_its_damaged_file_fails(judged: Judge) -> None:
    run = damaged_run()
    loads(run, VICTIM, slices_of(VICTIM))
    judgement = judged(run)
    assert judgement.verdict == "fail"
    assert said(judgement, "resume", "fail", "rank 2 loaded rank 2's file, the plan shows that of rank 0")


def test_a_file_that_was_loaded_under_its_other_name_is_found_again(judged: Judge) -> None:
    run = damaged_run(renamed=True)
    loads(run, VICTIM, f"checkpoints/{RENAMED}")
    judgement = judged(run)
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]


def test_a_damaged_file_that_a_rank_has_tried_and_given_up_is_no_load(judged: Judge) -> None:
    run = damaged_run()
    tried = run.only("load.begin", rank=VICTIM)
    run.add(f"resume-rank_{VICTIM}", {**tried, "path": slices_of(VICTIM), "mono": tried["mono"] - 10})
    assert judged(run).verdict == "pass"
    whole = run.only("load.begin", rank=1)
    run.add("resume-rank_1", {**whole, "mono": whole["mono"] - 10})
    assert said(judged(run), "resume", "fail", "a load of rank 1 did not")


def test_training_from_the_start_is_a_failure(judged: Judge) -> None:
    run = damaged_run()
    for event in ("load.begin", "load.end"):
        run.drop(event)
    for record in run.events("step.begin", attempt="resume"):
        record["step"] -= SAVED
    assert said(judged(run), "resume", "fail", "rank 0 began with step 1")


def test_where_all_files_are_damaged_there_is_nothing_to_go_on_from(judged: Judge) -> None:
    run = damaged_run()
    run.replan(restore=PlannedRestore(None, (), {}, {0: SAVED, VICTIM: SAVED}), resumes=False, resume_step=None)
    for name, records in run.files.items():
        if name.startswith("resume"):
            run.files[name] = [record for record in records if record["event"] in ("writer.start", "agent.start")]
    for record in run.events("rank.exit", attempt="resume"):
        record["code"] = 1
        run.others[f"logs/resume/worker_{record['rank']}.log"] = (
            b"FileNotFoundError: no step has a file for every rank\n"
        )
    judgement = judged(run)
    assert said(judgement, "resume", "pass", f"of 2 groups, files are left of step {SAVED}: 1")


def hopeless_run(log: str) -> GoodRun:
    """By the plan of an earlier version. The job is started again, and ends with this line in its log."""
    run = damaged_run()
    run.replan(restore=PlannedRestore(None, (), {}, {}, unrecorded=True), resumes=False, resume_step=None)
    for name, records in run.files.items():
        if name.startswith("resume"):
            run.files[name] = [record for record in records if record["event"] in ("writer.start", "agent.start")]
    for record in run.events("rank.exit", attempt="resume"):
        record["code"] = 1
        run.others[f"logs/resume/worker_{record['rank']}.log"] = f"{log}\n".encode()
    return run


@pytest.mark.parametrize(
    "log",
    [
        "FileNotFoundError: No tracker file found in load directory: './checkpoint/latest_checkpointed_iteration.txt'.",
        "ValueError: Invalid iteration num in ./checkpoint/latest_checkpointed_iteration.txt",
    ],
)
def test_a_job_without_its_record_says_so_in_mindformers_own_words(judged: Judge, log: str) -> None:
    assert said(judged(hopeless_run(log)), "resume", "pass", "4 ranks did")


def test_a_job_without_its_record_that_does_not_say_why_it_ended_is_unknown(judged: Judge) -> None:
    findings = said(
        judged(hopeless_run("ValueError: something else")), "resume", "unknown", "does not say why it ended"
    )
    assert findings


def test_a_job_without_its_record_that_loads_something_fails(judged: Judge) -> None:
    run = hopeless_run("ValueError: Invalid iteration num in ./checkpoint/latest_checkpointed_iteration.txt")
    load = next(damaged_run().events("load.begin", rank=1))
    run.add("resume-rank_1", load)
    assert said(judged(run), "resume", "fail", "rank 1 has recorded load.begin")


def stale_run() -> GoodRun:
    """Rank 2 loads its newest file, under whose name a fault has put the content of its older one."""
    run = damaged_run()
    run.replan(restore=PlannedRestore(SAVED, (), {**HOLDERS, VICTIM: (VICTIM,)}, {VICTIM: 2 * SAVED}))
    evidence(run).update(file=RENAMED, step=2 * SAVED, older=FILE)
    run.only("checkpoint.end", attempt="train", rank=VICTIM)["path"] = f"checkpoints/{RENAMED}"
    loads(run, VICTIM, f"checkpoints/{RENAMED}")
    return run


def test_who_loads_a_stale_file_has_loaded_the_older_one(judged: Judge) -> None:
    judgement = judged(stale_run())
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]


def test_a_stale_file_whose_older_one_is_not_known_is_a_damaged_one(judged: Judge) -> None:
    run = stale_run()
    del evidence(run)["older"]
    evidence(run).update(file=FILE, step=2 * SAVED)
    run.only("checkpoint.end", attempt="train", rank=VICTIM)["path"] = slices_of(VICTIM)
    loads(run, VICTIM, slices_of(VICTIM))
    assert said(judged(run), "resume", "fail", "which a fault had damaged")


def removed_run(kind: str) -> GoodRun:
    """The file, or the record of it, is gone."""
    run = damaged_run()
    effect = RECORD if kind == "damage-record" else DAMAGED
    faults = (run.plan.faults[0], replace(run.plan.faults[1], kind=kind, effect=effect))
    run.replan(faults=faults)
    for event in ("fault.armed", "fault.injecting", "fault.landed"):
        run.only(event, fault=LOSS)["kind"] = kind
    evidence(run)["after"] = "absent"
    run.only("checkpoint.end", attempt="train", rank=VICTIM)["step"] = SAVED
    return run


def test_a_file_of_json_in_a_save_is_of_the_rank_that_has_saved_the_files_beside_it(judged: Judge) -> None:
    run = damaged_run()
    own = f"iteration_{SAVED:08d}"
    evidence(run).update(file=f"{own}/common.json", after="absent")
    planned = replace(run.plan.faults[1], kind="remove-checkpoint", parameters={"part": "common.json"})
    run.replan(faults=(run.plan.faults[0], planned))
    for event in ("fault.armed", "fault.injecting", "fault.landed"):
        run.only(event, fault=LOSS)["kind"] = "remove-checkpoint"
    assert said(judged(run), "injection", "unknown", f"own history has no save of {own}/common.json")
    run.only("checkpoint.end", attempt="train", rank=VICTIM)["path"] = f"checkpoints/{own}/x-model-0000002-0000004"
    assert said(judged(run), "injection", "pass", "proven by the digests")


def in_iteration(run: GoodRun, file: str, part: str) -> None:
    """The file that was hit is one of a save in MindFormers' new layout, which the victim has made."""
    own = f"iteration_{SAVED:08d}"
    evidence(run)["file"] = f"{own}/{file}"
    run.replan(faults=(run.plan.faults[0], replace(run.plan.faults[1], parameters={"part": part})))
    save = run.only("checkpoint.end", attempt="train", rank=VICTIM)
    save["path"] = f"checkpoints/{own}/x-model-0000002-0000004"
    run.add(f"train-rank_{VICTIM}", {**save, "path": f"checkpoints/{own}/x-opt-0000002-0000004"})


MODEL, OPTIMIZER = "x-model-0000002-0000004.safetensors", "x-opt-0000002-0000004.safetensors"


@pytest.mark.parametrize(("file", "part"), [(MODEL, "model"), (OPTIMIZER, "optimizer"), ("common.json", "common.json")])
def test_the_part_that_was_hit_is_the_planned_one(judged: Judge, file: str, part: str) -> None:
    for planned in ("model", "optimizer", "common.json", "metadata.json"):
        run = damaged_run()
        in_iteration(run, file, planned)
        assert bool(said(judged(run), "injection", "unknown", f"is {part}, planned is {planned}")) == (part != planned)


@pytest.mark.parametrize(
    ("file", "part"), [("__0_0.distcp", "model"), (".metadata", ".metadata")], ids=["items", "metadata"]
)
def test_the_part_of_a_directory_that_was_hit_is_the_planned_one(judged: Judge, file: str, part: str) -> None:
    for planned in ("model", ".metadata"):
        run = damaged_run()
        evidence(run)["file"] = f"checkpoints/step_8/{file}"
        run.replan(faults=(run.plan.faults[0], replace(run.plan.faults[1], parameters={"part": planned})))
        run.only("checkpoint.end", attempt="train", rank=VICTIM)["path"] = "checkpoints/step_8"
        findings = judged(run)
        assert bool(said(findings, "injection", "unknown", f"is {part}, planned is {planned}")) == (part != planned)
        assert not said(findings, "injection", "unknown", "own history has no save of")


def test_a_save_is_given_up_whole_where_the_same_part_of_another_one_is_loaded_instead(tmp_path: Path) -> None:
    def tried(*files: str) -> list[str]:
        """What of these counts as loaded. The optimizer's file is damaged, and no load of it comes to its end."""
        run = damaged_run()
        in_iteration(run, OPTIMIZER, "optimizer")
        begin, end = run.only("load.begin", rank=VICTIM), run.only("load.end", rank=VICTIM)
        run.drop("load.begin", rank=VICTIM)
        run.drop("load.end", rank=VICTIM)
        for count, file in enumerate(files):
            ends = [] if file.endswith(OPTIMIZER) and f"_{SAVED:08d}" in file else [end]
            for record in (begin, *ends):
                run.add(f"resume-rank_{VICTIM}", {**record, "path": file, "mono": record["mono"] + count * 10})
        return [
            str(event.data["path"])
            for event in loads_made(read_history(run.write(tmp_path / str(len(files))) / "history"), VICTIM)
        ]

    new, old = (f"checkpoints/iteration_{step:08d}" for step in (SAVED, SAVED - 1))
    whole = [f"{old}/{MODEL}", f"{old}/{OPTIMIZER}"]
    assert tried(f"{new}/{MODEL}", f"{new}/{OPTIMIZER}", *whole) == whole
    assert tried(f"{new}/{MODEL}", f"{new}/{OPTIMIZER}") == [f"{new}/{MODEL}"]
    assert tried(f"{new}/{MODEL}", f"{new}/{OPTIMIZER}", whole[1]) == [f"{new}/{MODEL}", whole[1]]


@pytest.mark.parametrize("kind", ["remove-checkpoint", "damage-record"])
def test_what_is_gone_is_proved_by_its_absence(judged: Judge, kind: str) -> None:
    judgement = judged(removed_run(kind))
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    run = removed_run(kind)
    evidence(run)["after"] = AFTER
    assert said(judged(run), "injection", "unknown", "before and after are not in the evidence")


def test_a_record_of_another_step_than_the_last_saved_was_not_the_planned_one(judged: Judge) -> None:
    run = removed_run("damage-record")
    evidence(run)["step"] = SAVED - 1
    assert said(judged(run), "injection", "unknown", f"its last save is of step {SAVED}")


def test_an_absent_file_is_no_evidence_of_another_damage(judged: Judge) -> None:
    run = damaged_run()
    evidence(run)["after"] = "absent"
    assert said(judged(run), "injection", "unknown", "before and after are not in the evidence")
