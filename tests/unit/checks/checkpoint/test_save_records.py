"""What MindFormers writes down about its saves is held against the files, in either layout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.checks.checkpoint.save_records import judge_records
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.observe.checkpoints.saved_state import keep_digests
from tests.unit.observe.mindformers_files import write_iteration, write_safetensors

KILLED = Event("rank.exit", 5, 5, "harness", 1, "train", 1, 7, {"signal": 9, "code": None})


def judged(run: Path, *events: Event) -> list[Finding]:
    found = Collector("checkpoint")
    judge_records(History(events), Artifacts(run, None), found)
    return found.findings()


def legacy(run: Path, *, epoch: int = 8, name: str = "tiny_rank_0-8_1.safetensors") -> Path:
    """What a rank leaves that saved after step 8, at one step an epoch. Returns its directory."""
    directory = run / "job" / "checkpoint" / "rank_0"
    write_safetensors(directory / "tiny_rank_0-8_1.safetensors", {"w": [1.0]}, {"epoch_num": 8, "step_num": 8})
    meta = {"last_epoch": epoch, "last_step": 1, "last_ckpt_file": name}
    (directory / "meta.json").write_text(json.dumps(meta))
    return directory


def test_a_run_without_such_records_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path) == []


@pytest.mark.parametrize("events", [(), (KILLED,)])
def test_sound_records_pass_in_both_layouts(tmp_path: Path, events: tuple[Event, ...]) -> None:
    legacy(tmp_path)
    for step in (4, 8):
        write_iteration(tmp_path / "job" / "output", step, ranks=2)
    (finding,) = judged(tmp_path, *events)
    assert (finding.verdict, finding.seen) == ("pass", "1 meta.json, 1 trackers, 2 iterations agree with the files")


@pytest.mark.parametrize("prefix", ["tiny", "opt-125m"])
def test_records_are_true_of_digests_in_the_place_of_files(tmp_path: Path, prefix: str) -> None:
    write_iteration(tmp_path / "job" / "output", 8, ranks=2, prefix=prefix)
    keep_digests([checkpoint.path for checkpoint in find_checkpoints(tmp_path)])
    assert [finding.verdict for finding in judged(tmp_path)] == ["pass"]


def broken(run: Path, how: str) -> None:
    root = run / "job" / "output"
    newest = [write_iteration(root, step, ranks=2) for step in (4, 8)][-1]
    match how:
        case "stale meta":
            legacy(run, epoch=7, name="tiny_rank_0-7_1.safetensors")
        case "meta of another epoch":
            legacy(run, epoch=7)
        case "renamed":
            directory = legacy(run)
            (directory / "tiny_rank_0-8_1.safetensors").rename(directory / "tiny_rank_0-9_1.safetensors")
        case "meta cut":
            meta = legacy(run) / "meta.json"
            meta.write_bytes(meta.read_bytes()[:20])
        case "file cut":
            file = legacy(run) / "tiny_rank_0-8_1.safetensors"
            file.write_bytes(file.read_bytes()[:-1])
        case "tracker ahead":
            (root / "latest_checkpointed_iteration.txt").write_text("12")
        case "tracker empty":
            (root / "latest_checkpointed_iteration.txt").write_text("")
        case "stale directory":
            shutil.rmtree(newest)
            (root / "iteration_00000004").rename(newest)
        case "part missing":
            (newest / "tiny-opt-0000001-0000002.safetensors").unlink()
        case "no common":
            (newest / "common.json").unlink()


BROKEN = {
    "stale meta": "names tiny_rank_0-7_1.safetensors, which is not there",
    "meta of another epoch": "says epoch 7, step 1 of tiny_rank_0-8_1.safetensors",
    "renamed": "names tiny_rank_0-8_1.safetensors, which is not there",
    "meta cut": "meta.json cannot be read: not sound JSON",
    "file cut": "which is damaged: tensor 'step_num' ends at data byte",
    "tracker ahead": "names iteration 12, but there is no iteration_00000012",
    "tracker empty": "latest_checkpointed_iteration.txt cannot be read: '' is no iteration",
    "stale directory": "says step 8, its common.json 4",
    "part missing": "metadata.json names tiny-opt-0000001-0000002.safetensors, which is not there",
    "no common": "has no common.json, which says what step it holds",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_record_that_is_not_true_fails_with_the_file(how: str, tmp_path: Path) -> None:
    broken(tmp_path, how)
    seen = [finding.seen for finding in judged(tmp_path) if finding.verdict == "fail"]
    assert any(BROKEN[how] in one for one in seen), seen


def test_a_save_that_a_death_broke_off_is_not_blamed(tmp_path: Path) -> None:
    root = tmp_path / "job" / "output"
    write_iteration(root, 4)
    (write_iteration(root, 8) / "common.json").unlink()
    (root / "latest_checkpointed_iteration.txt").write_text("4")
    assert [finding.verdict for finding in judged(tmp_path, KILLED)] == ["pass"]
    assert [finding.verdict for finding in judged(tmp_path)] == ["fail"]


def test_a_file_that_gave_way_to_a_save_that_was_broken_off_is_unknown(tmp_path: Path) -> None:
    directory = legacy(tmp_path)
    (directory / "tiny_rank_0-8_1.safetensors").rename(directory / "tiny_rank_0-9_1.tmp")
    assert [finding.verdict for finding in judged(tmp_path, KILLED)] == ["unknown"]


def save(path: str, step: int, *, rank: int = 0) -> Event:
    data = {"kind": "periodic", "path": f"/there/job/{path}", "step": step}
    return Event("checkpoint.end", step, step, "agent", step, "resume", rank, 7 + rank, data)


def ended(code: int | None = 0, *, rank: int = 0) -> Event:
    return Event("rank.exit", 90, 90, "harness", 90, "resume", rank, 7 + rank, {"signal": None, "code": code})


LANDED = Event("fault.landed", 2, 2, "harness", 2, "resume", 0, 7, {"fault": "spike"})


def two_saves(run: Path) -> list[Event]:
    """Saves of step 7 and 8 in the legacy layout; the record names the first."""
    directory = legacy(run, epoch=7, name="tiny_rank_0-7_1.safetensors")
    write_safetensors(directory / "tiny_rank_0-7_1.safetensors", {"w": [1.0]}, {"epoch_num": 7, "step_num": 7})
    return [save(f"checkpoint/rank_0/tiny_rank_0-{step}_1.safetensors", step) for step in (7, 8)]


def two_iterations(run: Path) -> list[Event]:
    """Iterations 4 and 8 in the new layout; the tracker names the first."""
    for step in (4, 8):
        write_iteration(run / "job" / "output", step)
    (run / "job" / "output" / "latest_checkpointed_iteration.txt").write_text("4")
    return [save(f"output/iteration_{step:08d}/tiny-model-0000000-0000001", step) for step in (4, 8)]


SAVES: dict[Callable[[Path], list[Event]], str] = {
    two_saves: "meta.json names tiny_rank_0-7_1.safetensors, and tiny_rank_0-8_1 was saved after it, at step 8",
    two_iterations: "names iteration 4, and iteration_00000008 was saved after it, at step 8",
}


@pytest.mark.parametrize("saves", SAVES)
def test_a_record_that_names_an_older_save_fails(tmp_path: Path, saves: Callable[[Path], list[Event]]) -> None:
    events = saves(tmp_path)
    (found,) = judged(tmp_path, *events, ended())
    assert found.verdict == "fail" and SAVES[saves] in found.seen
    assert [finding.verdict for finding in judged(tmp_path, events[0], ended())] == ["pass"]


@pytest.mark.parametrize("saves", SAVES)
def test_where_a_fault_had_landed_in_that_launch_it_is_unknown(
    tmp_path: Path, saves: Callable[[Path], list[Event]]
) -> None:
    (finding,) = judged(tmp_path, LANDED, *saves(tmp_path), ended())
    assert finding.verdict == "unknown" and "a fault had landed in that launch" in finding.seen


@pytest.mark.parametrize("saves", SAVES)
def test_where_a_rank_did_not_come_to_its_end_the_record_may_not_have_been_due(
    tmp_path: Path, saves: Callable[[Path], list[Event]]
) -> None:
    events = saves(tmp_path)
    assert [finding.verdict for finding in judged(tmp_path, *events, ended(), ended(1, rank=1))] == ["pass"]
    assert [finding.verdict for finding in judged(tmp_path, *events)] == ["pass"]


def test_a_record_of_a_save_in_the_background_is_not_asked_for(tmp_path: Path) -> None:
    events = two_saves(tmp_path)
    events[1].data["asynchronous"] = True
    assert [finding.verdict for finding in judged(tmp_path, *events, ended())] == ["pass"]
