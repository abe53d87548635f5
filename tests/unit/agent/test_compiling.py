"""Only what is really compiled is recorded."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.compiling import hook_compiling
from chaos.agent.record import Record
from tests.unit.agent.conftest import Events


def graph_api() -> Any:
    """A module as MindSpore 2.10 has it: a method that compiles a phase once."""
    module: Any = ModuleType("mindspore.graph.api")
    module.ms_compile_cache = set()

    class _JitExecutor:
        __module__ = "mindspore.graph.api"

        def compile(self, method_name: str, *args: Any, phase: str = "") -> str:
            module.ms_compile_cache.add(phase or method_name)
            return phase or method_name

    module._JitExecutor = _JitExecutor
    return module


def test_a_graph_is_recorded_when_it_is_compiled_and_not_when_it_is_run_again(record: Record, events: Events) -> None:
    module = graph_api()
    hook_compiling(record, module)
    executor = module._JitExecutor()
    assert [executor.compile("step"), executor.compile("step"), executor.compile("step", phase="other")] == [
        "step",
        "step",
        "other",
    ]
    compiled = events("graph.compiled")
    assert [event.data["function"] for event in compiled] == ["step", "step"]
    assert all(event.data["seconds"] >= 0 for event in compiled)


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_the_files_of_the_cache_are_recorded_with_the_graph(
    record: Record, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, writes: bool
) -> None:
    monkeypatch.setenv("MS_COMPILER_CACHE_ENABLE", "1")
    monkeypatch.setenv("MS_COMPILER_CACHE_PATH", str(tmp_path))
    place = tmp_path / "rank_0" / "graph_cache"
    place.mkdir(parents=True)
    if there:
        (place / "compile_cache_0.mindir").write_bytes(b"graph")
    module = graph_api()
    compile_ = module._JitExecutor.compile

    def compiling(self: Any, name: str) -> Any:
        if writes:
            (place / "compile_cache_1.mindir").write_bytes(b"graph")
        return compile_(self, name)

    module._JitExecutor.compile = compiling
    hook_compiling(record, module)
    module._JitExecutor().compile("step")
    (compiled,) = events("graph.compiled")
    assert (compiled.data["cached"], compiled.data["cache_written"]) == (there, writes)


def test_without_a_cache_nothing_is_said_of_its_files(
    record: Record, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MS_COMPILER_CACHE_ENABLE", "0")
    module = graph_api()
    hook_compiling(record, module)
    module._JitExecutor().compile("step")
    assert set(events("graph.compiled")[0].data) == {"function", "seconds"}


def test_a_module_that_only_hands_the_class_on_is_left_alone(record: Record, events: Events) -> None:
    module = graph_api()
    module._JitExecutor.__module__ = "mindspore.elsewhere"
    before = module._JitExecutor.compile
    hook_compiling(record, module)
    hook_compiling(record, ModuleType("mindspore.graph.api"))
    assert module._JitExecutor.compile is before
