"""What is kept of a run instead of its large checkpoints says of them what they were."""

from __future__ import annotations

from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.run.retention import keep_digests_only
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


def test_directories_too_deep_to_be_searched_keep_nothing_from_being_thinned_out(
    tmp_path: Path, make_deep: MakeDeep
) -> None:
    write_iteration(tmp_path / "job" / "output", 4, ranks=2)
    make_deep(tmp_path / "job" / "deep")
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r1", clock=SYSTEM_CLOCK) as history:
        keep_digests_only(tmp_path, 0, history)
    assert not list((tmp_path / "job" / "output").rglob("*.safetensors"))
