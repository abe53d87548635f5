"""Whose a checkpoint of PyTorch is, which step it holds, and what each rank holds of one that all have saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.digest import EMPTY_PART
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import kept_of, owners_of
from chaos.evidence.checkpoints.saved import stored_step
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.checkpoints.stored import leaves_out_updates
from chaos.evidence.checkpoints.whole import holds
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState, read_saved_state
from tests.kit.checkpoints.torch_dcp import job_directory
from tests.kit.checkpoints.torch_save import TorchSave, floats, job_state

START = Event("run.start", 0, 0, "harness", 0, None, None, None, {"run": "r1"})


def event(name: str, seq: int, rank: int, **data: Any) -> Event:
    return Event(name, seq, seq, "agent", seq, "train", rank, 7 + rank, data)


def saved(rank: int, path: str, step: int) -> list[Event]:
    """What a rank records of a save after a step."""
    return [
        event("step.begin", 10 * step, rank, step=step),
        event("step.end", 10 * step + 1, rank, step=step),
        event("checkpoint.begin", 10 * step + 2, rank, kind="periodic", path=f"/there/r1/job/{path}", step=step),
        event("checkpoint.end", 10 * step + 3, rank, kind="periodic", path=f"/there/r1/job/{path}", step=step),
    ]


def history(*events: Event) -> History:
    return History((START, *sorted(events, key=lambda fact: fact.mono)))


def test_a_directory_belongs_to_every_rank_that_has_saved_it(tmp_path: Path) -> None:
    path = job_directory(8).write(tmp_path / "job" / "step_8")
    owners = owners_of(history(*saved(0, "step_8", 8), *saved(1, "step_8", 8)), Artifacts(tmp_path, None))
    assert [(file.path, file.rank, file.shared, file.held) for file in owners.owned] == [
        (path, 0, True, frozenset({8})),
        (path, 1, True, frozenset({8})),
    ]


def test_a_directory_is_known_by_the_parts_that_ranks_have_recorded(tmp_path: Path) -> None:
    job_directory(8).write(tmp_path / "job" / "step_8")
    recorded = history(*(fact for rank in (0, 1) for fact in saved(rank, f"step_8/__{rank}_0.distcp", 8)))
    owners = owners_of(recorded, Artifacts(tmp_path, None))
    assert [(file.path.name, file.rank) for file in owners.owned] == [(".metadata", 0), (".metadata", 1)]
    assert owners.unowned == ()


@pytest.mark.parametrize("path", ["step_8", "step_8/__0_0.distcp"])
def test_an_unfinished_directory_is_no_checkpoint(tmp_path: Path, path: str) -> None:
    job_directory(8).write(tmp_path / "job" / "step_8").unlink()
    artifacts = Artifacts(tmp_path, None)
    (save,) = [fact for fact in saved(0, path, 8) if fact.event == "checkpoint.end"]
    assert kept_of(save, artifacts) is None
    assert owners_of(history(*saved(0, path, 8)), artifacts).owned == ()
    assert artifacts.unfinished() == [tmp_path / "job" / "step_8"]


STATE = SavedState({"w": "whole", "b": "same"}, (), {}, shards={"w": {0: "upper", 1: "lower"}})


@pytest.mark.parametrize(
    ("rank", "recorded", "expected"),
    [
        (0, "upper", "upper"),
        (1, "upper", "lower"),
        (1, "whole", "whole"),
        (2, "lower", "lower"),
        (2, "other", "whole"),
        (2, None, "whole"),
    ],
)
def test_a_rank_holds_the_part_that_it_has_written(rank: int, recorded: str | None, expected: str) -> None:
    theirs = {"b": "same"} if recorded is None else {"b": "same", "w": recorded}
    assert as_held(STATE, rank, theirs).digests == {"w": expected, "b": "same"}


def test_a_rank_that_has_written_no_part_may_hold_no_value_of_a_parameter() -> None:
    theirs = {"w": EMPTY_PART, "b": EMPTY_PART}
    assert as_held(STATE, 2, theirs).digests == theirs
    assert as_held(STATE, 1, theirs).digests == {"w": "lower", "b": EMPTY_PART}
    assert as_held(replace(STATE, shards={}), 2, {"b": EMPTY_PART}).digests == {"w": "whole", "b": EMPTY_PART}


def test_a_directory_holds_what_each_rank_held_and_not_what_another_did(tmp_path: Path) -> None:
    path = job_directory(8).write(tmp_path / "job" / "step_8")
    recorded = history(*saved(0, "step_8", 8), *saved(1, "step_8", 8))
    first, second = owners_of(recorded, Artifacts(tmp_path, None)).owned
    state = read_saved_state(path)
    parts = {rank: {name: shards[rank] for name, shards in state.shards.items()} for rank in (0, 1)}
    held = {rank: {**state.digests, **parts[rank]} for rank in (0, 1)}
    assert holds(first, state, held[0]) and holds(second, state, held[1])
    assert not holds(first, state, held[1])
    name = next(iter(state.shards))
    assert not holds(first, state, {**held[0], name: "0" * 32})


def test_a_file_of_another_name_has_the_step_of_its_optimizer(tmp_path: Path) -> None:
    TorchSave().write(tmp_path / "job" / "last.pt", job_state(8))
    recorded, artifacts = history(*saved(0, "last.pt", 9)), Artifacts(tmp_path, None)
    (file,) = owners_of(recorded, artifacts).owned
    assert stored_step(recorded, artifacts, file) == 8


@pytest.mark.parametrize(("own", "step"), [(12, 12), (4, None)])
def test_where_updates_were_left_out_the_optimizers_count_is_no_step(
    tmp_path: Path, own: int, step: int | None
) -> None:
    """The record of the save counts then, if the script's own number supports it: a stale file has another one."""
    TorchSave().write(tmp_path / "job" / "last.pt", {**job_state(8), "step": own})
    recorded = history(*saved(0, "last.pt", 12), event("update.left_out", 5, 0, step=1))
    artifacts = Artifacts(tmp_path, None, updates_left_out=leaves_out_updates(recorded))
    (file,) = owners_of(recorded, artifacts).owned
    assert stored_step(recorded, artifacts, file) == step


@pytest.mark.parametrize(("own", "step"), [(7, 8), (8, 8), (9, 8), (3, None), (None, None)])
def test_a_scripts_own_step_only_supports_the_record(tmp_path: Path, own: int | None, step: int | None) -> None:
    TorchSave().write(tmp_path / "job" / "last.pt", {"w": floats(1.0), **({} if own is None else {"step": own})})
    recorded, artifacts = history(*saved(0, "last.pt", 8)), Artifacts(tmp_path, None)
    (file,) = owners_of(recorded, artifacts).owned
    assert stored_step(recorded, artifacts, file) == step
    assert stored_step(recorded, artifacts, replace(file, held=frozenset())) is None


def test_a_file_that_a_thread_has_saved_later_holds_the_recorded_step(tmp_path: Path) -> None:
    TorchSave().write(tmp_path / "job" / "last.pt", {"w": floats(1.0)})
    *_, end = saved(0, "last.pt", 8)
    for late, held in ({}, frozenset()), ({"late": True}, frozenset({8})):
        after = event("checkpoint.end", 92, 0, **end.data, **late)
        recorded = history(event("step.begin", 90, 0, step=9), event("step.end", 91, 0, step=9), after)
        (file,) = owners_of(recorded, Artifacts(tmp_path, None)).owned
        assert file.held == held


def test_a_file_without_a_number_holds_the_step_after_which_its_rank_held_the_same(tmp_path: Path) -> None:
    """A script may save under one name after every epoch, with nothing but the number of the epoch in it."""
    path = TorchSave().write(tmp_path / "job" / "last.pt", {"w": floats(1.0), "epoch": 1})
    held = dict(read_saved_state(path).digests)
    other = dict.fromkeys(held, "0" * 32)
    saves = [*saved(0, "last.pt", 4), *saved(0, "last.pt", 8)]

    def step(*digests: tuple[int, dict[str, str]]) -> int | None:
        facts = (event("digest", 10 * number + 1, 0, step=number, parameters=theirs) for number, theirs in digests)
        recorded, artifacts = history(*saves, *facts), Artifacts(tmp_path, None)
        (file,) = owners_of(recorded, artifacts).owned
        return stored_step(recorded, artifacts, file)

    assert step((4, held), (8, other)) == 4
    assert step((4, other), (8, held)) == 8
    assert step((4, other), (8, other)) is None  # the rank never held this after a save
    assert step((4, held), (8, held)) is None  # nothing changed in between
    assert step((5, held), (8, other)) is None  # no save was made after step 5
    assert step((4, {**held, "lost": "1" * 32})) is None  # the file lacks what the rank held
    assert step() is None


@pytest.mark.parametrize(("own", "step"), [(4, 4), (3, 4), (5, 4), (8, None)])
def test_a_file_that_was_overwritten_holds_what_its_rank_held_if_its_own_number_agrees(
    tmp_path: Path, own: int, step: int | None
) -> None:
    """The last save under this name is another one than the file's content, as at a resume in the middle of a run."""
    path = TorchSave().write(tmp_path / "job" / "last.pt", {"w": floats(1.0), "step": own})
    held = event("digest", 41, 0, step=4, parameters=dict(read_saved_state(path).digests))
    recorded = history(*saved(0, "last.pt", 4), *saved(0, "last.pt", 12), held)
    artifacts = Artifacts(tmp_path, None)
    (file,) = owners_of(recorded, artifacts).owned
    assert stored_step(recorded, artifacts, file) == step
