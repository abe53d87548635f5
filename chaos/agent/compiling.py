"""Records of every graph that MindSpore compiles: its function, its duration and its effect on the compile cache.

MindSpore's log says whether a graph came from the cache. The files of the cache are the other witness.
"""

from __future__ import annotations

import functools
import glob
import os
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
    compiled_methods: set[str] = set()

    @functools.wraps(original)
    def compile_with_agent(self: Any, method_name: str, *args: Any, **kwargs: Any) -> Any:
        # MindSpore calls this in every step; only a call that adds to the compiled graphs has compiled.
        cache = None if method_name in compiled_methods else _cache_files()
        compiled_methods.add(method_name)
        known, began = len(compiled), time.perf_counter_ns()
        phase = original(self, method_name, *args, **kwargs)
        if len(compiled) != known:
            seconds = (time.perf_counter_ns() - began) / 1e9
            cache_fields = {} if cache is None else {"cached": bool(cache), "cache_written": cache != _cache_files()}
            record.write("graph.compiled", function=method_name, seconds=round(seconds, 6), **cache_fields)
        return phase

    executor.compile = compile_with_agent


def _cache_files() -> dict[str, int] | None:
    """Return the graphs in the compile cache, each with the time of its last change; None where there is no cache."""
    if os.environ.get("MS_COMPILER_CACHE_ENABLE") != "1":
        return None
    root = glob.escape(os.environ.get("MS_COMPILER_CACHE_PATH") or ".")
    files = {}
    for path in glob.glob(os.path.join(root, "rank_*", "graph_cache", "*.mindir")):
        try:
            files[path] = os.stat(path).st_mtime_ns
        except OSError:  # a rank that writes it replaces it
            files[path] = 0
    return files
