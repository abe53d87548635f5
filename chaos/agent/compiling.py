"""Records every graph that MindSpore compiles: which function, and how long it took."""

from __future__ import annotations

import functools
import time
from types import ModuleType
from typing import Any

from chaos.agent.record import Record


def hook_compiling(record: Record, module: ModuleType) -> None:
    """Wrap the compilation of functions under ``jit``. Names are those of MindSpore 2.10."""
    executor = getattr(module, "_JitExecutor", None)
    compiled = getattr(module, "ms_compile_cache", None)
    if executor is None or compiled is None or executor.__module__ != module.__name__:
        return
    original = executor.compile

    @functools.wraps(original)
    def compile_with_agent(self: Any, method_name: str, *args: Any, **kwargs: Any) -> Any:
        # It is called in every step; only a call that adds to what is compiled has compiled.
        known, began = len(compiled), time.perf_counter_ns()
        phase = original(self, method_name, *args, **kwargs)
        if len(compiled) != known:
            seconds = (time.perf_counter_ns() - began) / 1e9
            record.write("graph.compiled", function=method_name, seconds=round(seconds, 6))
        return phase

    executor.compile = compile_with_agent
