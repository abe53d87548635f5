"""A state that a thread of the job's own saves later has the step in which it was taken."""

from __future__ import annotations

import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_digest
from chaos.agent.record import Record
from chaos.agent.torch.files import Files, hook_torch_files
from chaos.agent.torch.saves.taken import TakenStates
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


def state(value: float) -> dict[str, Any]:
    return {"layer.weight": numpy.array([value], "float32"), "layer.bias": numpy.array([0], "float32")}


def digests(value: float) -> dict[str, str]:
    return {**{name: array_digest(held) for name, held in state(value).items()}, "optimizer.step.0": "any"}


@pytest.fixture
def taken() -> TakenStates:
    states = TakenStates(lambda value: array_digest(value) if hasattr(value, "dtype") else None)
    for step in (4, 5, 6):
        states.note(step, digests(step))
    return states


@pytest.mark.parametrize(
    ("saved", "step"),
    [
        ({"model": state(5), "optimizer": {"state": {}}, "step": 9}, 5),
        ({f"module.{name}": value for name, value in state(6).items()}, 6),
        ({"model": state(5), "average": state(4.5)}, 5),
        ({"model": state(5), "another": state(4)}, None),
        ({"model": state(7)}, None),
        ({"model": {"layer.weight": state(5)["layer.weight"]}}, None),
        ({"model": {"layer.weight": "text", "layer.bias": "text"}}, None),
        ([state(5)], None),
    ],
    ids=["in a file", "wrapped", "beside an average", "of two steps", "of none", "half", "no tensors", "no names"],
)
def test_the_weights_tell_the_step(taken: TakenStates, saved: Any, step: int | None) -> None:
    assert taken.step_of(saved) == step


def test_a_step_that_is_trained_again_has_its_last_state(taken: TakenStates) -> None:
    taken.note(5, digests(5.5))
    assert (taken.step_of(state(5)), taken.step_of(state(5.5))) == (None, 5)


def test_a_training_that_changes_nothing_has_no_such_step(taken: TakenStates) -> None:
    taken.note(7, digests(6))
    assert taken.step_of(state(6)) is None


def in_thread(act: Any) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@pytest.mark.parametrize("known", [True, False])
def test_a_save_of_another_thread_is_recorded_late_and_has_no_barrier(
    record: Record, events: Events, tmp_path: Path, known: bool
) -> None:
    armed = [{"step": 2, "phase": phase, "fault": phase} for phase in ("checkpoint.begin", "checkpoint.write")]
    training = Training(record, Barriers(record, None, armed), Digests(record, 1))
    files, torch = Files(training), ModuleType("torch.serialization")
    torch.load = None  # type: ignore[attr-defined]

    def save(obj: Any, f: Any) -> None:
        Path(f).write_text("")
        files.wrote()

    torch.save = save  # type: ignore[attr-defined]
    hook_torch_files(files, torch)
    held = state(0)
    training.begin(0, list(held.items()))
    for step in (1, 2):
        training.step_begin(step)
        held["layer.weight"] += 1
        training.step_end(0.5, None)
    training.step_begin(3)
    in_thread(lambda: torch.save(state(1 if known else 1.5), tmp_path / "late.pt"))
    (begin,), (end,) = events("checkpoint.begin"), events("checkpoint.end")
    assert begin.data == end.data
    assert (end.data["late"], end.data.get("step")) == (True, 1 if known else None)
    assert events("barrier.reached") == []
    torch.save(state(2), tmp_path / "own.pt")
    assert (events("checkpoint.end")[1].data["step"], "late" in events("checkpoint.end")[1].data) == (3, False)
