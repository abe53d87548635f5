"""What is kept of a run instead of its large checkpoints says of them what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import kept_of
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.checkpoint_error import CheckpointNotSupported
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.run.retention import keep_digests_only
from tests.kit.checkpoints.torch_dcp import job_directory
from tests.kit.checkpoints.torch_save import TorchSave, job_state
from tests.unit.conftest import MakeDeep
from tests.unit.observe.mindformers_files import write_iteration


def test_sound_saves_of_several_ranks_are_thinned_out_to_sound_digests(tmp_path: Path) -> None:
    for step in (4, 8):
        write_iteration(tmp_path / "job" / "output", step, ranks=2)
    before = [read_saved_state(checkpoint.path) for checkpoint in find_checkpoints(tmp_path)]
    path = tmp_path / "history" / "harness.jsonl"
    path.parent.mkdir()
    with HistoryWriter(path, writer="harness", run="r1", clock=SYSTEM_CLOCK) as history:
        keep_digests_only(tmp_path, 0, history)
    assert [read_saved_state(checkpoint.path) for checkpoint in find_checkpoints(tmp_path)] == before
    recorded = read_history(tmp_path / "history").select("checkpoint.digested")
    assert len(recorded) == 4 and all((tmp_path / str(event.data["path"])).is_file() for event in recorded)
    assert not list((tmp_path / "job").rglob("*.safetensors"))


def test_recorded_saves_of_pytorch_are_thinned_out_to_their_digests(tmp_path: Path) -> None:
    file = TorchSave().write(tmp_path / "job" / "step-8.pt", job_state(8))
    directory = job_directory(8).write(tmp_path / "job" / "step_8").parent
    other = tmp_path / "job" / "state.msgpack"
    other.write_bytes(b"\x81\xa1w" * 99)
    data = TorchSave().write(tmp_path / "job" / "data.pt", job_state(1))
    (tmp_path / "history").mkdir()
    before = [read_saved_state(path) for path in (file, directory / ".metadata")]
    with HistoryWriter(tmp_path / "history" / "h.jsonl", writer="harness", run="r1", clock=SYSTEM_CLOCK) as history:
        for path in (file, directory, other):
            history.record("checkpoint.end", attempt="train", rank=0, path=str(path), kind="periodic", step=8)
        keep_digests_only(tmp_path, 0, history)
    artifacts, saves = Artifacts(tmp_path, None), read_history(tmp_path / "history").select("checkpoint.end")
    kept = [kept_of(save, artifacts) for save in saves]
    assert [path and path.name for path in kept] == [
        "step-8.pt.digests.json",
        ".metadata.digests.json",
        "state.msgpack.digests.json",
    ]
    assert [read_saved_state(path) for path in kept[:2] if path] == before
    with pytest.raises(CheckpointNotSupported, match="none of the known formats"):
        read_saved_state(kept[2] or other)
    assert not list((tmp_path / "job").rglob("*.distcp"))
    assert data.is_file(), "a file that no rank has saved is none of its checkpoints"


def test_directories_too_deep_to_be_searched_keep_nothing_from_being_thinned_out(
    tmp_path: Path, make_deep: MakeDeep
) -> None:
    write_iteration(tmp_path / "job" / "output", 4, ranks=2)
    make_deep(tmp_path / "job" / "deep")
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r1", clock=SYSTEM_CLOCK) as history:
        keep_digests_only(tmp_path, 0, history)
    assert not list((tmp_path / "job" / "output").rglob("*.safetensors"))
