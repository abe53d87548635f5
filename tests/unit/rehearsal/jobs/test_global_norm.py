"""The watch over the global norm of the rehearsed job, without MindSpore: what it throws, records and loads."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest

import chaos.rehearsal.job
from chaos.mechanisms.tre.plan import EXCLUSIVE

SOURCE = Path(chaos.rehearsal.job.__file__).parent / "jobs" / "global_norm.py"


class Number:
    """A tensor of one number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def asnumpy(self) -> Any:
        return numpy.array([self.value])[0]


class World:
    """The module under test, among stand-ins for the parts of MindSpore that it imports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rank = 0
        self.barriers = 0
        self.loaded: list[str] = []
        parts: dict[str, dict[str, Any]] = {
            "mindspore": {
                "Tensor": object,
                "nn": SimpleNamespace(Optimizer=object),
                "ops": None,
                "runtime": SimpleNamespace(synchronize=lambda: None),
                "load_checkpoint": self._load,
            },
            "mindspore.communication": {"get_rank": lambda: self.rank},
            "mindspore.communication.comm_func": {"barrier": self._barrier},
            "mindspore.train": {"Callback": object, "RunContext": object},
        }
        for name, attributes in parts.items():
            module = ModuleType(name)
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, name, module)
        spec = importlib.util.spec_from_file_location("global_norm_under_test", SOURCE)
        assert spec is not None and spec.loader is not None
        self.module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def monitor(self, output: Path, **more: Any) -> Any:
        self.optimizer = SimpleNamespace(global_norm=Number(0.0), global_step=Number(0))
        return self.module.GlobalNormMonitor(str(output), 5.0, self.optimizer, **more)

    def step(self, monitor: Any, step: int, norm: float) -> None:
        self.optimizer.global_norm, self.optimizer.global_step = Number(norm), Number(step)
        monitor.on_train_step_end(None)

    def _barrier(self) -> None:
        self.barriers += 1

    def _load(self, path: str) -> dict[str, Any]:
        self.loaded.append(path)
        return {"step_num": 6}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def record(output: Path) -> Any:
    return json.loads((output / "abnormal_global_norm.json").read_text())


def test_a_norm_at_the_threshold_stops_the_step_once(world: World, tmp_path: Path) -> None:
    monitor = world.monitor(tmp_path)
    world.step(monitor, 7, 4.99)
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match=r"TREError occurred\.\.\.\.\.\."):
        world.step(monitor, 8, 5.0)
    assert record(tmp_path) == {"8": [5.0]}
    assert world.barriers == 1
    world.step(monitor, 8, 5.5)
    assert record(tmp_path) == {"8": [5.0, 5.5]}
    with pytest.raises(RuntimeError, match="TREError"):
        world.step(monitor, 9, 6.0)


def test_only_rank_0_writes(world: World, tmp_path: Path) -> None:
    world.rank = 1
    with pytest.raises(RuntimeError, match="TREError"):
        world.step(world.monitor(tmp_path), 8, 7.5)
    assert not list(tmp_path.iterdir())


def test_a_record_of_an_earlier_run_suppresses_the_throw(world: World, tmp_path: Path) -> None:
    (tmp_path / "abnormal_global_norm.json").write_text('{"8": [9.0]}')
    monitor = world.monitor(tmp_path)
    world.step(monitor, 8, 7.5)
    assert record(tmp_path) == {"8": [9.0, 7.5]}
    with pytest.raises(RuntimeError, match="TREError"):
        world.step(monitor, 9, 7.5)


def test_data_skipping_is_refused_in_the_words_that_the_plan_quotes(world: World, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be turned on at the same time") as refused:
        world.monitor(tmp_path, skip_data=True)
    assert str(refused.value) == EXCLUSIVE


def test_the_file_that_was_written_last_is_loaded_whatever_its_name_says(world: World, tmp_path: Path) -> None:
    for name, at in (("mnist-1_9.ckpt", 10), ("mnist-1_3.ckpt", 20), ("mnist-1_6.ckpt", 5)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    parameters, redundancy = world.module.newest_checkpoint(str(tmp_path))()
    assert (parameters, redundancy) == ({"step_num": 6}, False)
    assert world.loaded == [str(tmp_path / "mnist-1_3.ckpt")]


def test_without_a_checkpoint_there_is_nothing_to_go_back_to(world: World, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no periodic checkpoint in"):
        world.module.newest_checkpoint(str(tmp_path))()
