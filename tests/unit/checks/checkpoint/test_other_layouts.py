"""Checkpoints that lie elsewhere than in a directory for each rank are judged like the others, as far as is known whose
they are; where nobody can say that, the verdict is unknown and names the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from chaos.checks.checkpoint.periodic_values import EXPECTED
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import REMEMBERED, owners_of
from chaos.evidence.checkpoints.periodic import is_saved
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History, read_history
from tests.kit.runs.good_run import (
    RANKS,
    SAVED,
    VICTIM,
    GoodRun,
    Record,
    Saved,
    digests_of,
    good_run,
    pid_of,
    record,
    state_after,
)
from tests.kit.runs.moved_run import DIRECTORY, Place, moved_run
from tests.unit.checks.judging import Judge, not_passed, said
from tests.unit.observe.mindformers_files import write_divided, write_iteration

LAYOUTS: dict[str, Place] = {
    "rank in the name": lambda rank, step: f"mindformers_rank_{rank}-1_{step}.safetensors",
    "rank in the name, started again": lambda rank, step: f"ckpt_dir/tiny_rank_{rank}_1-1_{step}.ckpt",
    "directory of the user": lambda rank, step: f"ckpt_dir/{DIRECTORY[rank]}/sliced-1_{step}.ckpt",
    "name of the user": lambda rank, step: f"ckpt_dir/{DIRECTORY[rank]}-after-{step}.ckpt",
    "one name, overwritten": lambda rank, step: f"ckpt_dir/{DIRECTORY[rank]}/latest.safetensors",
    "one file of a replica group": lambda rank, step: f"ckpt_dir/group_{rank % 2}/sliced-1_{step}.ckpt",
}
NAMED, LETTERS = LAYOUTS["rank in the name"], LAYOUTS["directory of the user"]
STEP_KNOWN = "the step to resume from is known"


@pytest.fixture(params=[name for name in LAYOUTS if name != "one name, overwritten"])
def run(request: pytest.FixtureRequest) -> GoodRun:
    return moved_run(LAYOUTS[request.param])


def values(judged: Judge, run: GoodRun) -> list[Finding]:
    return [
        finding for finding in judged(run).findings if finding.check == "checkpoint" and finding.expected == EXPECTED
    ]


def test_files_that_hold_what_their_ranks_held_pass_wherever_they_lie(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert not_passed(judgement) == []
    (finding,) = said(judgement, "checkpoint", "pass", EXPECTED)
    assert finding.seen in ("4 files compared by digest", "2 files compared by digest")


def test_the_job_has_saved_wherever_the_files_lie(run: GoodRun, tmp_path: Path) -> None:
    """So it is started again, as far as the harness is concerned."""
    written = run.write(tmp_path / "saved")
    history = read_history(written / "history")
    assert is_saved(history, Artifacts(written, None), "periodic")
    assert not is_saved(history, Artifacts(written, None), "end-of-life")
    run.saved.clear()
    written = run.write(tmp_path / "nothing")
    assert not is_saved(read_history(written / "history"), Artifacts(written, None), "periodic")


def test_a_job_has_saved_what_lies_outside_the_runs_directory(tmp_path: Path) -> None:
    run = moved_run(lambda rank, step: f"/data/ckpt/rank_{rank}/latest.ckpt")
    run.saved.clear()
    written = run.write(tmp_path / "run")
    assert is_saved(read_history(written / "history"), Artifacts(written, None), "periodic")


def test_another_content_fails_wherever_it_lies(run: GoodRun, judged: Judge) -> None:
    for saved in (run.saved[1], run.saved[3]):
        saved.state = {**saved.state, "moments.layer1.weight": np.zeros((2, 3), np.float32)}
    (finding,) = values(judged, run)[:1]
    assert finding.verdict == ("unknown" if "group_1" in finding.where[0] else "fail")
    assert run.saved[1].path in finding.where[0]


def test_half_a_file_fails_wherever_it_lies(run: GoodRun, judged: Judge) -> None:
    for saved in (run.saved[1], run.saved[3]):
        saved.keep = 60
    assert any(finding.verdict == "fail" and "is damaged: " in finding.seen for finding in values(judged, run))


def test_a_resume_from_another_step_than_the_plans_fails_wherever_the_files_lie(run: GoodRun, judged: Judge) -> None:
    for rank, saved in run.saved.items():
        saved.state = state_after(rank, SAVED - 1)
    expected = f"training goes on at step {SAVED + 1} | step {SAVED - 1} was saved"
    assert said(judged(run), "resume", "fail", expected)


def test_a_rank_that_goes_on_with_another_state_than_the_files_fails(run: GoodRun, judged: Judge) -> None:
    run.only("initial", attempt="resume", rank=1)["parameters"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "fail", "parameters of rank 1 are not the file's: layer1.bias")


def test_a_damaged_file_that_is_loaded_fails_wherever_it_lies(judged: Judge) -> None:
    for place in (NAMED, LETTERS):
        run = moved_run(place)
        for event in ("load.begin", "load.end"):
            run.only(event, attempt="resume", rank=VICTIM)["path"] = place(VICTIM, SAVED)
        assert said(judged(run), "resume", "fail", "which a fault had damaged")


def test_a_rank_that_loads_the_file_of_another_replica_group_fails(judged: Judge) -> None:
    run = moved_run(LETTERS)
    for event in ("load.begin", "load.end"):
        run.only(event, attempt="resume", rank=0)["path"] = LETTERS(1, SAVED)
    assert said(judged(run), "resume", "fail", "rank 0 loaded rank 1's file, of another replica group")


@pytest.mark.parametrize("key", ["path", "rank"])
def test_without_the_ranks_records_nobody_knows_whose_a_file_is(key: str, judged: Judge) -> None:
    run = moved_run(LETTERS)
    for event in ("checkpoint.begin", "checkpoint.end"):
        for entry in run.events(event):
            del entry[key]
    judgement = judged(run)
    nothing = "no rank has recorded saving it, and neither its name nor its content identifies the rank"
    findings = said(judgement, "checkpoint", "unknown", f"job/{LETTERS(0, SAVED)}: {nothing}")
    assert findings and findings[0].where == (f"job/{LETTERS(0, SAVED)}",)
    assert said(judgement, "resume", "unknown", f"{STEP_KNOWN} | rank 0 loaded {LETTERS(0, SAVED)}: {nothing}")
    assert judgement.verdict == "unknown"


def test_a_file_of_no_known_rank_that_is_damaged_fails(judged: Judge) -> None:
    run = moved_run(LETTERS)
    run.drop("checkpoint.end", path=LETTERS(1, SAVED))
    run.drop("checkpoint.begin", path=LETTERS(1, SAVED))
    run.saved[1].keep = 60
    assert said(judged(run), "checkpoint", "fail", f"job/{LETTERS(1, SAVED)} is damaged")


def test_the_rank_in_a_name_counts_without_a_record_and_does_not_contradict_one(judged: Judge) -> None:
    run = moved_run(NAMED)
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.drop(event, attempt="train", rank=0)
    assert said(judged(run), "checkpoint", "pass", f"{EXPECTED} | 4 files compared by digest")
    for event in ("checkpoint.begin", "checkpoint.end"):
        for entry in run.events(event, attempt="train", rank=1):
            entry["path"] = NAMED(3, SAVED)
    run.drop("checkpoint.begin", attempt="train", rank=3)
    run.drop("checkpoint.end", attempt="train", rank=3)
    seen = f"job/{NAMED(3, SAVED)}: rank 1 has recorded that it saved it, but its name says rank 3"
    assert said(judged(run), "checkpoint", "unknown", seen)


def test_a_rank_in_a_name_that_the_job_does_not_have_is_none(judged: Judge) -> None:
    run = moved_run(NAMED)
    run.saved[9] = Saved(f"job/{NAMED(9, SAVED)}", state_after(0, SAVED), {})
    seen = f"job/{NAMED(9, SAVED)}: its name says rank 9, but the job has no such rank as far as is known"
    assert said(judged(run), "checkpoint", "unknown", seen)


def test_the_rank_that_is_stored_counts_and_is_not_contradicted_by_the_name(judged: Judge) -> None:
    run = moved_run(lambda rank, step: f"from-{DIRECTORY[rank]}-1_{step}.ckpt")
    for event in ("checkpoint.begin", "checkpoint.end"):
        del run.only(event, attempt="train", rank=0)["path"]
    run.saved[0].appended["cur_rank"] = 0
    assert not_passed(judged(run)) == []
    run.saved[0].appended["cur_rank"] = 1
    assert said(judged(run), "checkpoint", "fail", "parameters in rank 1's file of step 5 differ")
    run = moved_run(NAMED)
    run.saved[0].appended["cur_rank"] = 2
    seen = "cur_rank 2 is stored in it, but rank 0 has recorded that it saved it, but its name says rank 0"
    assert said(judged(run), "checkpoint", "unknown", f"job/{NAMED(0, SAVED)}: {seen}")


def test_of_a_file_that_ranks_of_several_groups_have_saved_the_content_says_whose_it_is(judged: Judge) -> None:
    """A script that gives all ranks one directory: the last one's file is left, and the others have none."""
    run = moved_run(lambda rank, step: f"ckpt_dir/sliced-1_{step}.ckpt")
    findings = said(judged(run), "resume", "fail", "rank 0 loaded rank 1's file, of another replica group")
    assert findings and findings[0].where[-1] == "job/ckpt_dir/sliced-1_5.ckpt"
    for saved in run.saved.values():
        saved.state = state_after(0, SAVED - 1) | {"global_step": np.array([SAVED], np.int32)}
    judgement = judged(run)
    nobody = "ranks 0-1,3 have recorded that they saved it, and the owner of its content is unknown"
    assert said(judgement, "checkpoint", "unknown", f"job/ckpt_dir/sliced-1_5.ckpt: {nobody}")
    assert said(judgement, "resume", "unknown", f"{STEP_KNOWN} | rank 0 loaded ckpt_dir/sliced-1_5.ckpt: {nobody}")


def test_a_file_of_a_group_is_that_of_the_rank_that_has_saved_its_step(judged: Judge) -> None:
    """A replica that was lost before it could save that step held the same."""
    run = moved_run(lambda rank, step: f"ckpt_dir/group_{rank % 2}/latest.ckpt")
    early = run.only("digest", attempt="train", rank=1, step=SAVED - 2)["mono"]
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.only(event, attempt="train", rank=1)["step"] = SAVED - 2
        run.only(event, attempt="train", rank=1)["mono"] = early + 1000
    for records in run.files.values():
        records.sort(key=lambda event: int(event["mono"]))
    assert said(judged(run), "checkpoint", "pass", f"{EXPECTED} | 2 files compared by digest")
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.drop(event, attempt="train", rank=3)
    assert said(judged(run), "checkpoint", "fail", f"holds step {SAVED}, and by its record the rank has saved")


def test_a_save_outside_the_runs_directory_is_unknown_and_named(judged: Judge) -> None:
    run = moved_run(lambda rank, step: f"/data/ckpt/rank_{rank}/sliced-1_{step}.ckpt")
    run.saved.clear()
    judgement = judged(run)
    there = "which is outside the run's directory, so it cannot be checked"
    findings = said(judgement, "checkpoint", "unknown", f"rank 2 has saved /data/ckpt/rank_2/sliced-1_5.ckpt, {there}")
    assert findings and findings[0].where
    assert said(judgement, "resume", "unknown", f"rank 0 loaded /data/ckpt/rank_0/sliced-1_5.ckpt: {there}")


def test_a_file_that_nobody_has_saved_and_whose_name_is_none_is_named_where_it_is_loaded(judged: Judge) -> None:
    run = moved_run(NAMED)
    run.others["job/pretrained.ckpt"] = b""
    run.only("load.begin", attempt="resume", rank=0)["path"] = "pretrained.ckpt"
    seen = "rank 0 loaded pretrained.ckpt: no rank has recorded that it saved it, and its name is not"
    assert said(judged(run), "resume", "unknown", f"{STEP_KNOWN} | {seen}")


WEIGHTS = "checkpoint_network/rank_{0}/tiny_rank_{0}-network-1_5.ckpt"
"""Of weights only, as MindFormers saves them: no step is stored."""


def with_weights(run: GoodRun, place: str = WEIGHTS) -> GoodRun:
    for rank in range(RANKS):
        weights = {name: array for name, array in state_after(rank, SAVED).items() if name.startswith("layer1.")}
        run.saved[10 + rank] = Saved(f"job/{place.format(rank)}", weights, {})
        fields: Record = {
            "attempt": "train",
            "rank": rank,
            "pid": pid_of("train", rank),
            "kind": "periodic",
            "step": SAVED,
        }
        for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
            one = record(10.453 + 0.001 * number, event, **fields, path=place.format(rank))
            run.add(f"train-rank_{rank}", one)
    return run


@pytest.mark.parametrize("place", [WEIGHTS, "ckpt_dir/tiny_rank_{0}-network-1_5.ckpt"])
def test_weights_without_a_step_are_those_of_the_step_at_which_they_were_saved(place: str, judged: Judge) -> None:
    run = with_weights(moved_run(NAMED), place)
    assert said(judged(run), "checkpoint", "pass", f"{EXPECTED} | 8 files compared by digest")
    for saved in run.saved.values():
        if "-network-" in saved.path:
            saved.state = {**saved.state, "layer1.bias": np.zeros(3, np.float32)}
    (finding, *_) = said(judged(run), "checkpoint", "fail", "1 of 2 parameters in rank 0's file of step 5 differ")
    assert place.format(0) in finding.where[0]


def test_weights_that_mindformers_may_have_converted_are_not_blamed(judged: Judge) -> None:
    run = with_weights(moved_run(NAMED), "checkpoint_trainable/rank_{0}/tiny_rank_{0}-trainable_params-1_5.ckpt")
    run.saved[10].state = {**run.saved[10].state, "layer1.bias": np.zeros(3, np.float32)}
    assert {finding.verdict for finding in values(judged, run)} == {"unknown"}


def test_weights_of_which_nobody_knows_the_step_are_unknown(judged: Judge) -> None:
    run = with_weights(moved_run(NAMED))
    for event in ("checkpoint.begin", "checkpoint.end"):
        run.drop(event, path=WEIGHTS.format(3))
    seen = "rank 3's file holds no step, and the rank has recorded none at which it saved it"
    (finding,) = said(judged(run), "checkpoint", "unknown", f"{seen}: tiny_rank_3-network-1_5.ckpt")
    assert finding.where == (f"job/{WEIGHTS.format(3)}",)


def test_a_resume_from_a_file_without_a_step_is_unknown_and_names_it(judged: Judge) -> None:
    run = with_weights(moved_run(NAMED))
    for rank in range(RANKS):
        run.only("load.begin", attempt="resume", rank=rank)["path"] = WEIGHTS.format(rank)
    seen = f"rank 0 loaded {WEIGHTS.format(0)}, which holds neither step_num nor global_step"
    assert said(judged(run), "resume", "unknown", f"{STEP_KNOWN} | {seen}")


def test_a_name_that_is_written_again_and_again_holds_the_last_save(judged: Judge) -> None:
    """The content tells which one that was: the file of the resume's last save took the place of what was loaded."""
    run = moved_run(LAYOUTS["one name, overwritten"], again=True)
    for rank, saved in run.saved.items():
        saved.state = state_after(rank, 2 * SAVED)
    assert said(judged(run), "checkpoint", "pass", f"{EXPECTED} | 4 files compared by digest")
    run.saved[1].state = state_after(0, SAVED) | {"global_step": np.array([2 * SAVED], np.int32)}
    assert said(judged(run), "checkpoint", "fail", "rank 1's file of step 10 differ")


def overwritten() -> GoodRun:
    """Step 10 was saved over what was loaded, and the harness has recorded what that was."""
    run = moved_run(LAYOUTS["one name, overwritten"], again=True)
    for rank, saved in run.saved.items():
        loaded, saved.state = saved.state, state_after(rank, 2 * SAVED)
        state = {"digests": digests_of(loaded), "infinite": [], "numbers": {"global_step": SAVED}, "partial": False}
        remembered = record(11.9, REMEMBERED, "resume", path=saved.path, state=state)
        run.add("harness", remembered)
    return run


def test_what_was_loaded_is_judged_by_what_was_remembered_of_it(judged: Judge) -> None:
    run = overwritten()
    assert not_passed(judged(run)) == []
    assert said(judged(run), "resume", "pass", "4 ranks compared by digest")


def test_another_state_than_the_remembered_one_fails(judged: Judge) -> None:
    run = overwritten()
    answer = run.only(REMEMBERED, path=run.saved[1].path)["state"]
    answer["digests"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "fail", "parameters of rank 1 are not the file's: layer1.bias")
    answer["numbers"]["global_step"] = SAVED - 1
    assert said(judged(run), "resume", "unknown", STEP_KNOWN)


def removed() -> GoodRun:
    """Step 10 was saved, and the files of step 5 that were loaded have been removed: the job keeps the last only."""
    place = LAYOUTS["name of the user"]
    run = moved_run(place, again=True)
    for rank, saved in run.saved.items():
        state = {"digests": digests_of(saved.state), "infinite": [], "numbers": {"global_step": SAVED}}
        run.add("harness", record(11.9, REMEMBERED, "resume", path=saved.path, state={**state, "partial": False}))
        saved.path, saved.state = (
            saved.path.replace(place(rank, SAVED), place(rank, 2 * SAVED)),
            state_after(rank, 2 * SAVED),
        )
    return run


def test_what_was_loaded_and_removed_is_judged_by_what_was_remembered_of_it(judged: Judge) -> None:
    run = removed()
    assert not_passed(judged(run)) == []
    assert said(judged(run), "resume", "pass", "4 ranks compared by digest")


def test_another_state_than_that_of_the_removed_file_fails(judged: Judge) -> None:
    run = removed()
    (answer,) = [one for one in run.events(REMEMBERED) if LAYOUTS["name of the user"](1, SAVED) in one["path"]]
    answer["state"]["digests"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "fail", "parameters of rank 1 are not the file's: layer1.bias")
    answer["state"]["numbers"]["global_step"] = SAVED - 1
    assert said(judged(run), "resume", "unknown", STEP_KNOWN)


def test_a_removed_file_that_nobody_remembers_is_unknown_and_said_to_be_gone(judged: Judge) -> None:
    run = removed()
    run.drop(REMEMBERED)
    (finding,) = said(judged(run), "resume", "unknown", STEP_KNOWN)
    assert "it is not there any more: the job has removed it since" in finding.seen
    assert not said(judged(run), "resume", "fail", "")


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"problem": "cut off"}, "cut off"),
        ({"state": {"digests": 5}}, "its content at the resume is not readable"),
        ({}, "its content at the resume is not readable"),
    ],
)
def test_a_record_that_tells_no_state_is_unknown(spoilt: Record, why: str, judged: Judge) -> None:
    run = overwritten()
    one = run.only(REMEMBERED, path=run.saved[1].path)
    del one["state"]
    one.update(spoilt)
    (finding,) = said(judged(run), "resume", "unknown", STEP_KNOWN)
    assert why in finding.seen and "rank 1 loaded" in finding.seen


def test_without_what_was_remembered_of_a_file_that_was_saved_anew_it_is_unknown(judged: Judge) -> None:
    run = overwritten()
    run.drop(REMEMBERED)
    (finding,) = said(judged(run), "resume", "unknown", STEP_KNOWN)
    assert "it was saved anew, and its content at the resume is unknown" in finding.seen
    assert not said(judged(run), "resume", "fail", "")


def test_without_the_step_of_the_save_a_name_that_tells_none_is_unknown(judged: Judge) -> None:
    run = overwritten()
    for event in ("checkpoint.begin", "checkpoint.end"):
        for entry in run.events(event, rank=1):
            del entry["step"]
    seen = "neither the name of rank 1's file nor its record tells at which step it was saved: latest.safetensors"
    assert said(judged(run), "checkpoint", "unknown", seen)


def flat_end_of_life(run: GoodRun) -> GoodRun:
    """The end-of-life checkpoints of all ranks in one directory."""
    assert run.plan.checkpoint is not None
    for rank, saved in run.saved.items():
        saved.path = saved.path.replace(f"rank_{rank}/", "")
    for event in ("load.begin", "load.end"):
        for entry in run.events(event, attempt="resume"):
            entry["path"] = entry["path"].replace("rank_0/", "").replace("rank_1/", "")
    return run


def test_an_end_of_life_checkpoint_beside_others_is_held_against_the_plan(judged: Judge) -> None:
    judgement = judged(flat_end_of_life(good_run()))
    assert {(finding.check, finding.verdict) for finding in judgement.findings if finding.verdict != "pass"} == {
        ("checkpoint", "fail")
    }
    assert said(judgement, "checkpoint", "fail", "the file is ttp_saved_checkpoints-step_5/rank_0/ttp_rank_0-1_5.ckpt")
    assert said(judgement, "checkpoint", "pass", "one checkpoint of every replica group, from an entitled rank")


def test_an_end_of_life_checkpoint_of_no_known_rank_does_not_count_as_missing(judged: Judge) -> None:
    run = flat_end_of_life(good_run())
    run.saved[0].appended["cur_rank"] = 2
    judgement = judged(run)
    why = "cur_rank 2 is stored in it, but its name says rank 0"
    assert said(
        judgement,
        "checkpoint",
        "unknown",
        f"the owner of each end-of-life checkpoint is known | {run.saved[0].path}: {why}",
    )
    assert said(judgement, "checkpoint", "unknown", "no checkpoint is known to be of replica group [0, 2]")
    assert not said(judgement, "checkpoint", "fail", "no checkpoint of replica group")
    run.replan(mechanism="none", checkpoint=None)
    run.without_resume()
    assert said(judged(run), "checkpoint", "fail", f"there is one, {run.saved[0].path}")


def saved_by(rank: int, path: Path) -> list[Event]:
    fields = {"kind": "periodic", "step": 8, "path": str(path.relative_to(path.parents[2]))}
    return [
        Event(name, 5, 5, f"train-rank_{rank}", 1, "train", rank, 7, fields)
        for name in ("checkpoint.begin", "checkpoint.end")
    ]


def new_layout() -> GoodRun:
    """Every rank's part in one directory, and the record of what is in which file."""
    directory = f"output/checkpoint/iteration_{SAVED:08d}"
    run = moved_run(
        lambda rank, step: f"output/checkpoint/iteration_{step:08d}/tiny-model-{rank:07d}-0000004.safetensors"
    )
    storage = {
        f"('{name}', ({rank},))": [{"file_name": Path(saved.path).name, "storage_rank": rank, "rank_group": [rank]}]
        for rank, saved in run.saved.items()
        for name in saved.state
    }
    run.others[f"job/{directory}/metadata.json"] = json.dumps({"storage_data": storage}).encode()
    run.others[f"job/{directory}/common.json"] = json.dumps({"step_num": SAVED, "global_step": SAVED}).encode()
    return run


def test_in_mindformers_new_layout_a_rank_may_read_parts_of_others_and_goes_on_with_its_own(judged: Judge) -> None:
    run = new_layout()
    path = run.saved[1].path.removeprefix("job/")
    for number, event in enumerate(("load.begin", "load.end")):
        place: Record = {"attempt": "resume", "rank": 0, "pid": pid_of("resume", 0)}
        run.add("resume-rank_0", record(20.45 + 0.01 * number, event, path=path, parameters=6, **place))
    assert not_passed(judged(run)) == []
    run.only("initial", attempt="resume", rank=0)["parameters"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "fail", "parameters of rank 0 are not the file's: layer1.bias")


def test_in_mindformers_new_layout_metadata_and_records_say_whose_a_file_is(tmp_path: Path) -> None:
    """The number in a name counts files where ranks have saved different parts of the same state."""
    directory = write_divided(tmp_path / "job" / "output", 8)
    names = {1: "tiny-model-0000000-0000001", 0: "tiny-opt-0000000-0000002", 2: "tiny-opt-0000001-0000002"}
    events = [event for rank, name in names.items() for event in saved_by(rank, directory / name)]
    found = owners_of(History(tuple(events)), Artifacts(tmp_path, None))
    assert {checkpoint.rank: checkpoint.path.stem for checkpoint in found.owned} == names and found.unowned == ()
    assert [checkpoint.optimizer for checkpoint in found.owned] == [None, None, None]
    found = owners_of(History(tuple(saved_by(2, directory / names[1]))), Artifacts(tmp_path, None))
    (stray,) = found.unowned
    assert stray.path.stem == names[1]
    assert stray.reason == "metadata.json beside it says rank 1, but rank 2 has recorded that it saved it"


def test_in_mindformers_new_layout_the_number_in_the_name_counts_where_nothing_else_is_known(tmp_path: Path) -> None:
    write_iteration(tmp_path / "job" / "output", 8)
    directory = tmp_path / "job" / "output" / "iteration_00000008"
    (directory / "adapter.safetensors").write_bytes((directory / "tiny-model-0000000-0000001.safetensors").read_bytes())
    started = Event("agent.start", 1, 1, "train-rank_0", 0, "train", 0, 7, {})
    found = owners_of(History((started,)), Artifacts(tmp_path, None))
    assert [(checkpoint.rank, checkpoint.path.name) for checkpoint in found.owned] == [
        (0, "tiny-model-0000000-0000001.safetensors")
    ]
    assert [file.path.name for file in found.unowned] == ["adapter.safetensors"]
    found = owners_of(History((started, *saved_by(0, directory / "adapter.safetensors"))), Artifacts(tmp_path, None))
    assert [checkpoint.rank for checkpoint in found.owned] == [0, 0] and found.unowned == ()
