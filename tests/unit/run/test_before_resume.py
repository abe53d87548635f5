"""Before a job is started again it is looked at what it has saved, whatever its names, and what may be overwritten."""

from __future__ import annotations

from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET, state_at_resume
from chaos.evidence.checkpoints.owner import REMEMBERED, owners_of
from chaos.history.event import Event
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.run.before_resume import look_at_saves, record_damage, record_damage_within
from chaos.store.directory import create_run
from tests.kit.runs.damage_stage import Stage, files_of_rank_0
from tests.kit.runs.good_run import SAVED, GoodRun
from tests.kit.runs.moved_run import DIRECTORY, Place, moved_run
from tests.unit.conftest import MakeDeep


def latest(rank: int, step: int) -> str:
    return f"ckpt_dir/{DIRECTORY[rank]}/latest.ckpt"


def usual(rank: int, step: int) -> str:
    return f"checkpoints/rank_{rank}/sliced-1_{step}.ckpt"


def looked(run: GoodRun, path: Path) -> tuple[bool, list[Event]]:
    """What it says of periodic checkpoints, and what it records."""
    written = run.write(path)
    with HistoryWriter(path / "looked.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as history:
        said = look_at_saves(written, "periodic", history)
    return said, [event for event in read_history(path).events if event.event == REMEMBERED]


def job(place: Place) -> GoodRun:
    """A job that saves there, as it is before it is started again."""
    run = moved_run(place)
    for name in [name for name in run.files if name.startswith("resume-")]:
        del run.files[name]
    return run


def test_what_may_be_saved_anew_under_the_same_name_is_remembered(tmp_path: Path) -> None:
    run = job(latest)
    run.saved[1].keep = 60
    said, recorded = looked(run, tmp_path)
    assert said and sorted(event.data["path"] for event in recorded) == sorted(
        saved.path for saved in run.saved.values()
    )
    of_rank = {event.data["path"]: event.data for event in recorded}
    assert of_rank[run.saved[0].path]["state"]["numbers"] == {"global_step": SAVED}
    assert "state" not in of_rank[run.saved[1].path] and of_rank[run.saved[1].path]["problem"]


def test_what_has_its_step_in_its_name_is_not(tmp_path: Path) -> None:
    assert looked(job(usual), tmp_path) == (True, [])


def test_nothing_is_saved_where_nothing_is(tmp_path: Path) -> None:
    run = job(latest)
    run.saved.clear()
    assert looked(run, tmp_path) == (False, [])


def test_what_was_remembered_is_read_in_the_place_of_what_lies_there_now(tmp_path: Path) -> None:
    run = job(latest)
    written = run.write(tmp_path / "run")
    artifacts = Artifacts(written, None)
    (file, *_) = owners_of(read_history(written / "history"), artifacts).owned
    before = artifacts.read_checkpoint(file.path)
    with HistoryWriter(written / "history" / "later.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as history:
        assert look_at_saves(written, "periodic", history)
    file.path.write_bytes(b"another")
    assert state_at_resume(read_history(written / "history"), Artifacts(written, None), file) == before


def test_directories_too_deep_to_be_searched_keep_no_job_from_its_resume(tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "job" / "deep")
    assert looked(job(usual), tmp_path) == (True, [])


def test_a_damaged_file_is_remembered_as_it_was_saved_and_as_it_lies_there(tmp_path: Path) -> None:
    stage = Stage(create_run(tmp_path / "reports", "torch", "", clock=SYSTEM_CLOCK), "flip-checkpoint")
    files_of_rank_0(stage)
    run = stage.owned.path.resolve()
    path = stage.job / "checkpoints" / "step-8.pt"
    saved = Artifacts(run, None).read_checkpoint(path)
    _, shown = stage.damage()
    stage.landed(shown)
    with HistoryWriter(run / "history" / "later.jsonl", writer="harness", run="torch", clock=SYSTEM_CLOCK) as history:
        assert look_at_saves(run, "periodic", history)
        record_damage(run, stage.job, history)
    recorded = read_history(run / "history")
    (file,) = [file for file in owners_of(recorded, Artifacts(run, None)).owned if file.path == path]
    assert state_at_resume(recorded, Artifacts(run, None), file) == saved
    (met,) = recorded.select(DAMAGE_MET)
    assert (met.attempt, met.rank, met.data["fault"], met.data["file"]) == ("resume", 0, "hit", shown["file"])
    assert met.data["content"] == shown["after"] != shown["before"]


def test_within_a_launch_the_first_new_process_alone_makes_it_look(tmp_path: Path) -> None:
    stage = Stage(create_run(tmp_path / "reports", "torch", "", clock=SYSTEM_CLOCK), "flip-checkpoint")
    files_of_rank_0(stage)
    run = stage.owned.path.resolve()
    with HistoryWriter(run / "history" / "later.jsonl", writer="harness", run="torch", clock=SYSTEM_CLOCK) as history:
        record_damage_within(run, stage.job, history)
        assert read_history(run / "history").first(DAMAGE_MET) is None
        _, shown = stage.damage()
        stage.landed(shown)
        record_damage_within(run, stage.job, history)
        (stage.job / shown["file"]).write_bytes(b"saved anew")
        record_damage_within(run, stage.job, history)
    (met,) = read_history(run / "history").select(DAMAGE_MET)
    assert (met.attempt, met.rank, met.data["content"]) == ("train", 0, shown["after"])
