"""Saves of MindFormers' new layout: found by their names, believed by what is inside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.layout import CheckpointFile, find_checkpoints
from chaos.observe.checkpoints.mindformers_layout import find_iterations, find_trackers
from chaos.observe.checkpoints.mindformers_records import read_metadata
from chaos.observe.checkpoints.mindformers_state import part_files
from chaos.observe.checkpoints.saved_state import keep_digests, read_saved_state
from tests.unit.observe.mindformers_files import write_divided, write_iteration, write_safetensors


def test_the_parts_of_every_rank_are_found(tmp_path: Path) -> None:
    root = tmp_path / "checkpoint"
    directories = [write_iteration(root, step, ranks=2) for step in (4, 8)]
    (directories[1] / "tiny-opt-0000001-0000002.tmp").touch()
    (directories[1] / "tmpab3_x9zq").touch()
    checkpoints = find_checkpoints(tmp_path)
    assert [
        (checkpoint.rank, checkpoint.step_in_epoch, checkpoint.kind, checkpoint.temporary) for checkpoint in checkpoints
    ] == [
        (0, 4, "either", False),
        (1, 4, "either", False),
        (0, 8, "either", False),
        (1, 8, "either", False),
    ]
    newest = find_iterations(tmp_path)[1]
    assert (newest.step, sorted(newest.models), sorted(newest.optimizers)) == (8, [0, 1], [0, 1])
    assert [path.name for path in newest.unfinished] == ["tiny-opt-0000001-0000002.tmp", "tmpab3_x9zq"]
    assert find_trackers(tmp_path) == [root / "latest_checkpointed_iteration.txt"]


def test_a_part_that_is_still_written_is_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "iteration_00000008" / "model-0000003-0000004.tmp"
    path.parent.mkdir()
    path.touch()
    assert find_checkpoints(tmp_path) == [CheckpointFile(path, 3, 1, 8, None, True, "either", 3)]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write_iteration(tmp_path / "outside", 4)
    job = tmp_path / "job"
    job.mkdir()
    (job / "iteration_00000004").symlink_to(outside, target_is_directory=True)
    inside = write_iteration(job, 8)
    model = inside / "tiny-model-0000000-0000001.safetensors"
    (inside / "tiny-model-0000001-0000001.safetensors").symlink_to(model)
    assert [checkpoint.path for checkpoint in find_checkpoints(job)] == [model]
    assert [iteration.path for iteration in find_iterations(job)] == [inside]


def test_a_rank_holds_its_model_and_its_optimizer_and_the_step_of_the_save(tmp_path: Path) -> None:
    model = write_iteration(tmp_path, 8, ranks=2) / "tiny-model-0000001-0000002.safetensors"
    state = read_saved_state(model)
    assert sorted(state.digests) == ["a.weight", "global_step", "moments.a.weight"]
    assert (state.numbers["step_num"], state.numbers["global_step"], state.numbers["epoch_num"]) == (8, 8, 1)


def test_digests_take_the_place_of_both_files(tmp_path: Path) -> None:
    model = write_iteration(tmp_path, 8) / "tiny-model-0000000-0000001.safetensors"
    state = read_saved_state(model)
    (kept,) = keep_digests([model])
    assert sorted(path.name for path in model.parent.iterdir()) == ["common.json", kept.name]
    assert read_saved_state(kept) == state
    assert [checkpoint.saved_as for checkpoint in find_checkpoints(tmp_path)] == [model]


@pytest.mark.parametrize("prefix", ["tiny", "opt-125m"])
def test_sound_saves_of_several_ranks_stay_sound_when_digests_take_their_place(prefix: str, tmp_path: Path) -> None:
    """Whichever of them are replaced, and in however many goes."""
    directory = write_iteration(tmp_path, 8, ranks=3, prefix=prefix)
    models = [directory / f"{prefix}-model-{rank:07d}-0000003.safetensors" for rank in range(3)]
    states = [read_saved_state(model) for model in models]
    kept = keep_digests(models[:1])
    assert [read_saved_state(path) for path in [*kept, *models[1:]]] == states
    kept += keep_digests(models[1:])
    assert [read_saved_state(path) for path in kept] == states


def test_a_missing_part_damages_all_of_a_save_also_when_digests_are_kept(tmp_path: Path) -> None:
    directory = write_iteration(tmp_path, 8, ranks=2)
    (directory / "tiny-opt-0000000-0000002.safetensors").unlink()
    for path in keep_digests([checkpoint.path for checkpoint in find_checkpoints(tmp_path)]):
        with pytest.raises(CheckpointError, match=r"names tiny-opt-0000000-0000002\.safetensors, which is missing"):
            read_saved_state(path)


def damage(directory: Path, how: str) -> None:
    model, optimizer = (directory / f"tiny-{part}-0000000-0000002.safetensors" for part in ("model", "opt"))
    match how:
        case "truncated model" | "truncated optimizer":
            path = model if "model" in how else optimizer
            path.write_bytes(path.read_bytes()[:-3])
        case "missing optimizer":
            optimizer.unlink()
        case "missing part of another rank":
            (directory / "tiny-model-0000001-0000002.safetensors").unlink()
        case "missing common":
            (directory / "common.json").unlink()
        case "stale optimizer":
            write_safetensors(optimizer, {"moments.a.weight": [0.5, 0, 4]}, {"global_step": 4})
        case "model in the optimizer's place":
            optimizer.write_bytes(model.read_bytes())
        case "stale common":
            common = {"epoch_num": 1, "step_num": 4, "global_step": 4}
            (directory / "common.json").write_text(json.dumps(common))


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("truncated model", "truncated"),
        ("truncated optimizer", "truncated"),
        ("missing optimizer", r"metadata.json beside it names tiny-opt-0000000-0000002.safetensors, which is missing"),
        ("missing part of another rank", "names tiny-model-0000001-0000002.safetensors, which is missing"),
        ("missing common", "common.json: cannot be read: No such file"),
        ("stale optimizer", "counted 4 steps, common.json beside it says 8: they are of two saves"),
        ("stale common", "counted 8 steps, common.json beside it says 4"),
        ("model in the optimizer's place", "'a.weight' is in tiny-model"),
    ],
)
def test_a_damaged_save_is_refused_with_the_file_and_the_reason(how: str, problem: str, tmp_path: Path) -> None:
    directory = write_iteration(tmp_path, 8, ranks=2)
    damage(directory, how)
    with pytest.raises(CheckpointError, match=problem):
        read_saved_state(directory / "tiny-model-0000000-0000002.safetensors")


def test_without_metadata_a_save_without_an_optimizer_is_sound(tmp_path: Path) -> None:
    directory = write_iteration(tmp_path, 8)
    (directory / "tiny-opt-0000000-0000001.safetensors").unlink()
    state = read_saved_state(directory / "tiny-model-0000000-0000001.safetensors")
    assert (sorted(state.digests), state.numbers["step_num"]) == (["a.weight"], 8)


def test_where_ranks_save_parts_of_the_same_state_metadata_says_whose_a_file_is(tmp_path: Path) -> None:
    """The numbers in the names count files then, and the optimizer's of the same number may be another rank's."""
    directory = write_divided(tmp_path, 8)
    storage = read_metadata(directory / "metadata.json")
    names = ("tiny-model-0000000-0000001", "tiny-opt-0000000-0000002", "tiny-opt-0000001-0000002")
    assert [storage.ranks[f"{name}.safetensors"] for name in names] == [1, 0, 2]
    assert storage.divided == {0, 1, 2}
    model = read_saved_state(directory / f"{names[0]}.safetensors")
    assert (sorted(model.digests), model.partial, model.numbers["global_step"]) == (["a.weight"], True, 8)
    optimizer = read_saved_state(directory / f"{names[2]}.safetensors")
    assert (sorted(optimizer.digests), optimizer.partial) == (["moments.b.weight"], True)


def test_the_optimizers_file_of_another_rank_is_not_taken_for_a_models(tmp_path: Path) -> None:
    """Also not where digests take the place of files."""
    directory = write_divided(tmp_path, 8)
    model, optimizer = (directory / f"tiny-{part}-0000000-0000001.safetensors" for part in ("model", "opt"))
    listed = (directory / "metadata.json").read_text()
    (directory / "tiny-opt-0000000-0000002.safetensors").rename(optimizer)
    (directory / "metadata.json").write_text(listed.replace("tiny-opt-0000000-0000002", optimizer.stem))
    assert sorted(read_saved_state(model).digests) == ["a.weight"]
    assert part_files(model) == (model,)
    swapped = listed.replace("tiny-opt-0000000-0000002", optimizer.stem).replace(
        '"storage_rank": 0', '"storage_rank": 1'
    )
    (directory / "metadata.json").write_text(swapped)
    assert sorted(read_saved_state(model).digests) == ["a.weight", "moments.a.weight"]


def test_a_file_of_another_name_is_read_with_the_step_beside_it(tmp_path: Path) -> None:
    directory = write_iteration(tmp_path, 8)
    other = directory / "adapter.safetensors"
    write_safetensors(other, {"lora.weight": [1.0]})
    assert (read_saved_state(other).numbers["step_num"], sorted(read_saved_state(other).digests)) == (
        8,
        ["lora.weight"],
    )
    (directory / "common.json").unlink()
    assert read_saved_state(other).numbers == {}
