"""A tracker is judged by the layout of the saves beside it: MindFormers' or Megatron's; of neither it is unknown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.checks.checkpoint.save_records import judge_records
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.tracked_layouts import save_of
from tests.kit.checkpoints.megatron_files import TRACKER, write_megatron
from tests.unit.observe.mindformers_files import write_iteration


def judged(run: Path, *events: Event) -> list[Finding]:
    collector = Collector("checkpoint")
    judge_records(History(events), Artifacts(run, None), collector)
    return collector.findings()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "job" / "ckpt"
    for step in (4, 8):
        write_megatron(root, step)
    return root


def test_megatrons_tracker_is_no_false_record_of_mindformers(tmp_path: Path, root: Path) -> None:
    (finding,) = judged(tmp_path)
    assert (finding.verdict, finding.seen) == ("pass", "0 meta.json, 1 trackers, 0 iterations agree with the files")
    assert root.name == "ckpt"


def test_a_release_of_megatron_is_named_by_its_word(tmp_path: Path, root: Path) -> None:
    (root / TRACKER).write_text("release")
    shutil.move(root / "iter_0000008", root / "release")
    assert [finding.verdict for finding in judged(tmp_path)] == ["pass"]
    shutil.rmtree(root / "iter_0000004")
    assert [finding.verdict for finding in judged(tmp_path)] == ["pass"]
    shutil.rmtree(root / "release")
    write_megatron(root, 4)
    (root / TRACKER).write_text("release")
    assert [finding.seen for finding in judged(tmp_path)] == [
        "job/ckpt/latest_checkpointed_iteration.txt names release, but there is no release"
    ]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("12", "names iteration 12, but there is no iter_0000012"),
        ("", "cannot be read: '' is no iteration"),
        ("x", "cannot be read: 'x' is no iteration"),
    ],
)
def test_a_false_tracker_of_megatron_fails(tmp_path: Path, root: Path, text: str, seen: str) -> None:
    (root / TRACKER).write_text(text)
    (finding,) = judged(tmp_path)
    assert (finding.verdict, finding.seen.endswith(seen)) == ("fail", True), finding.seen


def test_a_save_without_a_part_that_another_has_fails(tmp_path: Path, root: Path) -> None:
    shutil.rmtree(root / "iter_0000008" / "mp_rank_01")
    (finding,) = judged(tmp_path)
    assert (finding.verdict, finding.seen) == ("fail", "job/ckpt/iter_0000008 has no mp_rank_01, as another save has")


def test_a_save_that_the_tracker_does_not_name_yet_may_be_unfinished(tmp_path: Path, root: Path) -> None:
    (root / TRACKER).write_text("4")
    shutil.rmtree(root / "iter_0000008" / "mp_rank_01")
    assert [finding.verdict for finding in judged(tmp_path)] == ["pass"]


def test_a_tracker_that_stays_behind_the_last_save_fails(tmp_path: Path, root: Path) -> None:
    (root / TRACKER).write_text("4")
    path = "/there/job/ckpt/iter_0000008/mp_rank_00/model_optim_rng.pt"
    save = Event("checkpoint.end", 8, 8, "agent", 8, "train", 0, 7, {"kind": "periodic", "path": path, "step": 8})
    end = Event("rank.exit", 90, 90, "harness", 90, "train", 0, 7, {"signal": None, "code": 0})
    (finding,) = [finding for finding in judged(tmp_path, save, end) if finding.verdict != "pass"]
    assert finding.verdict == "fail"
    assert finding.seen.endswith("names iteration 4, and iter_0000008 was saved after it, at step 8")


@pytest.mark.parametrize("beside", ["nothing", "other directories", "both layouts"])
def test_a_tracker_of_an_unknown_layout_is_unknown(tmp_path: Path, beside: str) -> None:
    root = tmp_path / "job" / "ckpt"
    root.mkdir(parents=True)
    (root / TRACKER).write_text("8")
    if beside == "other directories":
        (root / "step_8").mkdir()
        (root / "release").mkdir()
    elif beside == "both layouts":
        write_megatron(root, 8)
        write_iteration(root, 8)
    (finding,) = [finding for finding in judged(tmp_path) if finding.verdict != "pass"]
    assert (finding.verdict, "nobody knows which program wrote it" in finding.seen) == ("unknown", True)


def test_the_save_of_a_file_is_known_by_its_directory() -> None:
    for path, name, step in (
        ("ckpt/iter_0000012/mp_rank_00_001/model_optim_rng.pt", "iter_0000012", 12),
        ("ckpt/iter_0000012/.metadata", "iter_0000012", 12),
        ("ckpt/iteration_00000012/a-model-0000000-0000001.safetensors", "iteration_00000012", 12),
    ):
        save = save_of(Path(path))
        assert save is not None and (save.root, save.name, save.step) == (Path("ckpt"), name, step)
    assert save_of(Path("ckpt/iteration_00000012/x/y.safetensors")) is None
    assert save_of(Path("ckpt/step_12.pt")) is None
