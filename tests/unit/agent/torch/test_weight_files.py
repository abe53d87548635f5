"""Weights that a job saves and loads by safetensors are recorded like files of PyTorch."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.record import Record
from chaos.agent.torch.files import Files
from chaos.agent.torch.weight_files import hook_opened_files, hook_weight_files
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


@pytest.fixture
def safetensors(record: Record) -> Any:
    """Return a module like ``safetensors.torch``, hooked."""
    module: Any = ModuleType("safetensors.torch")

    def save_file(tensors: dict[str, Any], filename: Any, metadata: dict[str, str] | None = None) -> None:
        Path(filename).write_text(repr(sorted(tensors)) + repr(metadata))

    def load_file(filename: Any, device: str = "cpu") -> dict[str, Any]:
        return {"layer.weight": device}

    module.save_file, module.load_file = save_file, load_file
    hook_weight_files(Files(Training(record, Barriers(record, None, []), Digests(record, 0))), module)
    return module


def test_a_save_has_a_begin_and_an_end_and_its_arguments(safetensors: Any, tmp_path: Path, events: Events) -> None:
    target = tmp_path / "model.safetensors"
    safetensors.save_file({"layer.weight": 1}, target, metadata={"format": "pt"})
    assert target.read_text() == "['layer.weight']{'format': 'pt'}"
    for name in ("checkpoint.begin", "checkpoint.end"):
        (event,) = events(name)
        assert (event.data["path"], event.data["kind"]) == (str(target), "periodic")


def test_a_load_is_recorded_with_its_parameters(safetensors: Any, tmp_path: Path, events: Events) -> None:
    assert safetensors.load_file(str(tmp_path / "a.safetensors"), device="meta") == {"layer.weight": "meta"}
    (load,) = events("load.end")
    assert (Path(load.data["path"]).name, load.data["parameters"]) == ("a.safetensors", 1)


def test_a_save_that_fails_has_no_end(safetensors: Any, tmp_path: Path, events: Events) -> None:
    with pytest.raises(FileNotFoundError):
        safetensors.save_file({}, tmp_path / "missing" / "a.safetensors")
    assert [event.event for event in (*events("checkpoint.begin"), *events("checkpoint.end"))] == ["checkpoint.begin"]


class Opened:
    """An open file of safetensors."""

    def __init__(self, filename: str, framework: str) -> None:
        self.filename, self.framework = filename, framework


def test_a_file_that_is_opened_is_loaded_once(record: Record, tmp_path: Path, events: Events) -> None:
    package, module = ModuleType("safetensors"), ModuleType("safetensors.torch")
    files = Files(Training(record, Barriers(record, None, []), Digests(record, 0)))
    package.safe_open = Opened  # type: ignore[attr-defined]
    hook_opened_files(files, package)
    safe_open: Any = package.safe_open
    module.save_file = None  # type: ignore[attr-defined]
    module.load_file = lambda filename: safe_open(filename, "pt")  # type: ignore[attr-defined]
    hook_weight_files(files, module)
    opened = safe_open(str(tmp_path / "a.safetensors"), framework="pt")
    assert (type(opened), opened.framework, isinstance(opened, safe_open)) == (Opened, "pt", True)
    module.load_file(tmp_path / "b.safetensors")
    assert [Path(event.data["path"]).name for event in events("load.end")] == ["a.safetensors", "b.safetensors"]
