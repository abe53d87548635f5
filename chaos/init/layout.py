"""The parallel sizes of a job, as far as its source says them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.init.source import Source, calls
from chaos.init.values import Value, Values

_AVERAGES = {
    "DistributedGradReducer",
    "GradReducer",
    "DistributedDataParallel",
    "DDP",
    "fully_shard",
    "FullyShardedDataParallel",
}
_CONTEXT = {"set_auto_parallel_context", "set_context_parallel"}


@dataclass(frozen=True)
class Layout:
    """The parallel sizes. Each is None where the source does not say it."""

    stages: Value | None = None
    sharded: Value | None = None
    shard_size: Value | None = None
    mode: str = ""
    mode_where: str = ""
    init: str = ""
    """The line that joins the ranks (``init()``); nothing where there is none."""

    averages: bool = False
    """Whether a line was found by which ranks with equal weights average their gradients."""


def read_layout(sources: Sequence[Source], values: Values) -> Layout:
    """Return the parallel sizes of a job."""
    stages = sharded = shard_size = None
    mode = mode_where = init = ""
    averages = False
    for source in sources:
        for call in calls(source):
            if call.name in ("init", "init_process_group", "initialize") and not init:
                init = call.where
            averages = averages or call.name in _AVERAGES
            if call.name == "pipeline":
                stages = stages or values.number(call.argument(0, "stages"), source)
            if call.name == "hsdp":
                sharded = sharded or Value(True, (call.where,))
                shard_size = shard_size or values.number(call.argument(0, "shard_size"), source)
            if call.name not in _CONTEXT:
                continue
            stages = stages or values.number(call.argument(None, "pipeline_stages"), source)
            on = values.of(call.argument(None, "enable_parallel_optimizer"), source)
            if on is not None and on.value is True:
                sharded = sharded or Value(True, (call.where,))
            config = call.argument(None, "parallel_optimizer_config")
            if isinstance(config, ast.Dict):
                shard_size = shard_size or _entry(config, "optimizer_weight_shard_size", source, values)
            if (word := call.argument(None, "parallel_mode")) is not None:
                mode = (word.attr if isinstance(word, ast.Attribute) else str(getattr(word, "value", ""))).lower()
                mode_where = call.where
    return Layout(stages, sharded, shard_size, mode, mode_where, init, averages or mode == "data_parallel")


def _entry(node: ast.Dict, name: str, source: Source, values: Values) -> Value | None:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == name:
            return values.number(value, source)
    return None
