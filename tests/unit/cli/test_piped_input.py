"""A file that is named on the command line may be a link, a pipe or standard input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base import named_files
from tests.unit.cli.kit import SCENARIO, Ended

Call = Callable[..., Ended]
Pipe = Callable[[str], str]
LOSS = "epoch: 1 step: 18, loss is 2.25\n"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    """Gives a text the name that a shell gives a process substitution."""
    monkeypatch.setattr(named_files, "_pipes", {})
    held = []

    def make(text: str) -> str:
        reading, writing = os.pipe()
        held.append(reading)
        os.write(writing, text.encode())
        os.close(writing)
        return f"/dev/fd/{reading}"

    yield make
    for descriptor in held:
        os.close(descriptor)


@pytest.fixture
def standard_input(pipe: Pipe) -> Iterator[Callable[[str], None]]:
    """Puts a text on standard input."""
    kept = os.dup(0)

    def put(text: str) -> None:
        os.dup2(int(pipe(text).rpartition("/")[2]), 0)

    yield put
    os.dup2(kept, 0)
    os.close(kept)


def test_a_log_that_is_named_is_read_through_a_link(chaos: Call, tmp_path: Path) -> None:
    (tmp_path / "rank.log").write_text(LOSS)
    (tmp_path / "worker_3.log").symlink_to("rank.log")
    ended = chaos("logs", str(tmp_path / "worker_3.log"))
    assert (ended.code, ended.err) == (0, "")
    assert "rank 3 epoch=1 step_in_epoch=18" in ended.out


def test_a_log_is_read_from_a_pipe_and_from_standard_input(
    chaos: Call, pipe: Pipe, standard_input: Callable[[str], None]
) -> None:
    for name in (pipe(LOSS), "-"):
        standard_input(LOSS)
        ended = chaos("logs", name)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.endswith(f"{name}: reader mindspore; 1 lines, 1 events (train.loss 1), 0 unknown lines\n")


def test_the_pieces_in_which_a_pipe_gives_a_log_choose_no_other_reader(chaos: Call, tmp_path: Path) -> None:
    """A log whose first line only documents have is a program's by its second one."""
    path = tmp_path / "log"
    os.mkfifo(path)
    if (child := os.fork()) == 0:
        with path.open("wb", buffering=0) as stream:
            stream.write(b"nextState: STATE_OP_DUMP\n")
            stream.write(LOSS.encode())
        os._exit(0)
    try:
        assert "reader mindspore; 2 lines, 1 events (train.loss 1), 1 unknown lines" in chaos("logs", str(path)).out
    finally:
        os.waitpid(child, 0)


def test_a_scenario_is_planned_and_validated_from_a_pipe(
    chaos: Call, place: Path, pipe: Pipe, standard_input: Callable[[str], None]
) -> None:
    assert chaos("validate", pipe(SCENARIO)).out == "1 file, 1 cell: no problems\n"
    standard_input(SCENARIO)
    (plan,) = json.loads(chaos("plan", "-", "--json").out)["plans"]
    assert plan["scenario"] == "kill-rank"


def test_what_is_wrong_in_a_scenario_from_a_pipe_is_told_with_its_place(chaos: Call, place: Path, pipe: Pipe) -> None:
    ended = chaos("validate", pipe(SCENARIO.replace("steps:", "stps:")))
    assert ended.code == 64
    assert "unknown key 'stps'" in ended.out
    assert ended.out.startswith("pipe-")


def test_files_that_a_piped_scenario_names_are_looked_for_in_the_current_directory(
    chaos: Call, place: Path, pipe: Pipe
) -> None:
    from chaos.cli.scenarios import load

    assert load(pipe(SCENARIO)).path.parent.absolute() == place


def test_a_soak_reads_its_scenario_again_and_takes_no_pipe(chaos: Call, place: Path, pipe: Pipe) -> None:
    ended = chaos("soak", pipe(SCENARIO))
    assert (ended.code, "give a file" in ended.err) == (64, True)


def test_a_manifest_is_checked_from_a_pipe_and_from_standard_input(
    chaos: Call, pipe: Pipe, standard_input: Callable[[str], None]
) -> None:
    manifest = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: tiny, labels: {a: 1}}\n"
    standard_input(manifest)
    for name in (pipe(manifest), "-"):
        ended = chaos("kubernetes", "check", name)
        assert ended.code == 64
        assert "label a is no text (1)" in ended.out
