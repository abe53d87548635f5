"""Keys of a scenario that a configuration of MindFormers decides, and MindFormers' defaults.

Source of the defaults: MindFormers, mindformers/tools/register/template.py (2.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chaos.jobs.mindformers.configuration import is_off
from chaos.jobs.mindformers.saving import Saving, layout_origin, saving_of
from chaos.jobs.mindformers.typed import Typed
from chaos.scenario.completion import Filled, Origin, Unfinished
from chaos.scenario.rules_base import mapped, whole

SECTIONS = ("runner_config", "parallel_config", "parallel", "monitor_config", "context", "checkpoint")
"""Mappings that hold the keys."""

SINKING = "runner_config.sink_mode"

ALONE = frozenset({"STAND_ALONE", "MANUAL_PARALLEL"})
HYBRID = frozenset({3, "HYBRID_PARALLEL"})
DATA_ONLY = frozenset({0, "DATA_PARALLEL"}) | HYBRID
SLICED = frozenset({1, "SEMI_AUTO_PARALLEL", 2, "AUTO_PARALLEL"})
"""Values of ``parallel.parallel_mode``: every rank for itself; data parallelism over all existing ranks, where
MindFormers sets all sizes of ``parallel_config`` to 1 (trainer/base_trainer.py, 1.0 to 2.1); and the modes in which
these sizes multiply to the number of ranks.
"""


def decided(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """Yield the values that the configuration gives to keys of the scenario."""
    for name in SECTIONS:
        typed.section(name, dict)
    typed.section("callbacks", list)
    yield from _sizes(typed, cell)
    device = typed.text("context.device_target")
    yield Filled(("job", "device"), device or "Ascend", typed.origin("context.device_target", "Ascend"))
    sink = typed.whole("runner_config.sink_size", least=-1)
    if not sinks(typed):
        yield Filled(
            ("job", "sink_size"),
            1,
            _named(typed.configuration.origin(SINKING, typed.configuration.get(SINKING)), "one step at a time"),
        )
    elif sink is None or sink > 0:
        yield Filled(("job", "sink_size"), 1 if sink is None else sink, typed.origin("runner_config.sink_size", 1))
    seed = typed.whole("seed", most=2**32 - 1)
    yield Filled(("job", "seed"), 1 if seed is None else seed, typed.origin("seed", 1))
    yield from _epochs(typed, cell)
    saving = saving_of(typed)
    if saving is not None:
        yield Filled(("job", "checkpoint_interval"), *_interval(typed, saving, sink))
        in_background = saving.flag(typed, "async_save")
        if in_background[0]:
            yield Filled(("job", "storage", "asynchronous_saving"), True, in_background[1])
    yield from _watch(typed)


def sinks(typed: Typed) -> bool:
    """Return whether steps are sunk to the device. Without sinking, MindFormers ignores the sink size.

    A number, too, turns it on or off; another rule says that MindSpore accepts no number.
    """
    return not is_off(typed.configuration.get(SINKING))


def _interval(typed: Typed, saving: Saving, sink: int | None) -> tuple[int, Origin]:
    """Return the steps between checkpoints: one is saved at the end of the first sink after it is due
    (MindSpore, ModelCheckpoint).
    """
    steps, origin = saving.interval(typed)
    if sinks(typed) and sink is not None and sink > 1 and steps % sink:
        steps += sink - steps % sink
        origin = _named(origin, f"every {steps} steps, at the end of a sink of {sink}")
    return steps, origin


def facts(typed: Typed) -> Iterator[tuple[str, Origin]]:
    """Yield further values of the configuration that a reader of the plan needs."""
    yield "batch size", typed.origin("runner_config.batch_size", 1)
    yield "output directory", _named(typed.origin("output_dir", "./output"), "a run has one of its own")
    for name, keys in _OPTIONAL.items():
        read = [key for key in keys if not key.startswith("checkpoint.") or typed.release.layout == "section"]
        key = next((key for key in read if (value := typed.configuration.get(key)) is not None and value.data), None)
        if key is not None:
            yield name, typed.origin(key)
    saving = saving_of(typed)
    if saving is not None:
        yield "checkpoint layout", layout_origin(typed, saving)
        yield "checkpoint prefix", saving.text(typed, "prefix", "CKP")[1]
        yield "checkpoints kept", saving.origin("keep_checkpoint_max" if saving.legacy else "save_max", 5)


_OPTIONAL = {
    "jit level": ("context.jit_config.jit_level", "context.jit_level"),
    "weights from": ("checkpoint.load_path", "load_checkpoint"),
}
"""Facts that a plan shows only if the configuration has them."""


def _sizes(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """Yield the parallel sizes, and the number of ranks as their product.

    Context parallelism counts as data parallelism here: the ranks that share a sequence hold the same weights. In pure
    data parallelism MindFormers uses all existing ranks, so the scenario may give another number.
    """
    value = typed.configuration.get("parallel.parallel_mode")
    mode = value.data if value is not None and isinstance(value.data, (int, str)) else None
    if mode in DATA_ONLY and typed.flag("use_parallel"):
        key = "parallel_config.data_parallel"
        if "ranks" not in mapped(cell.data.get("cluster")):
            yield Filled(("cluster", "ranks"), typed.whole(key, least=1) or 1, typed.origin(key, 1))
        return
    if not typed.flag("use_parallel") or mode in ALONE:
        key = "parallel.parallel_mode" if typed.flag("use_parallel") else "use_parallel"
        yield Filled(("cluster", "ranks"), 1, _named(typed.origin(key, "false"), "one rank"))
        return
    data, model, stages, context = (
        typed.whole(f"parallel_config.{name}", least=1) or 1
        for name in ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel")
    )
    origin = typed.origin("parallel_config.data_parallel", 1)
    if context > 1:
        origin = _named(origin, f"times context_parallel {context}, whose ranks hold the same weights")
    parallel = ("cluster", "parallel")
    yield Filled((*parallel, "data_parallel"), data * context, origin)
    yield Filled((*parallel, "model_parallel"), model, typed.origin("parallel_config.model_parallel", 1))
    yield Filled((*parallel, "pipeline_stage"), stages, typed.origin("parallel_config.pipeline_stage", 1))
    ranks = data * model * stages * context
    section = typed.configuration.get("parallel_config")
    origin = typed.configuration.origin("parallel_config", section, "one rank")
    yield Filled(("cluster", "ranks"), ranks, replace(origin, value=f"{ranks} ranks"))
    sharded = typed.flag("parallel.enable_parallel_optimizer")
    key = "enable_parallel_optimizer"
    yield Filled((*parallel, key), bool(sharded), typed.origin(f"parallel.{key}", "False"))
    size, origin = shard_size(typed, data * context)
    if sharded:
        yield Filled((*parallel, "optimizer_weight_shard_size"), size, origin)


def shard_size(typed: Typed, copies: int) -> tuple[int, Origin]:
    """Return the number of ranks over which one copy of the optimizer's state is sliced, if it is parallel."""
    key = "parallel.parallel_optimizer_config.optimizer_weight_shard_size"
    size = typed.whole(key, least=-1)
    origin = typed.origin(key if size is not None else "parallel.enable_parallel_optimizer")
    if size is None or size < 1 or copies % size:
        # MindSpore (set_auto_parallel_context): a size that does not divide the ranks takes no effect.
        return copies, _named(origin, f"all {copies} data-parallel ranks")
    return size, origin


def _epochs(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """Yield the steps of one epoch, if the scenario gives their total."""
    steps, epochs = whole(mapped(cell.data.get("job")).get("steps")), typed.whole("runner_config.epochs", least=1) or 1
    if steps is not None and steps > 0 and steps % epochs == 0:
        origin = _named(typed.origin("runner_config.epochs", 1), f"{steps // epochs} steps in each")
        yield Filled(("job", "steps_per_epoch"), steps // epochs, origin)


def _named(origin: Origin, words: str) -> Origin:
    return replace(origin, value=f"{origin.value} ({words})")


def _watch(typed: Typed) -> Iterator[Filled]:
    """Yield the watch over the global norm."""
    watch = watch_of(typed)
    if watch is not None:
        yield Filled(("job", "tre", "threshold"), watch[0], watch[1])
        if typed.flag("use_skip_data_by_global_norm"):
            yield Filled(("job", "tre", "skip_data"), True, typed.origin("use_skip_data_by_global_norm"))


def watch_of(typed: Typed) -> tuple[float, Origin] | None:
    """Return the threshold from which a global norm is abnormal, and its place; None if no check is on.

    ``health_checkpoint`` (2.1) counts if it has a threshold. Without one the keys of 1.6 count; MindFormers 2.1 then
    carries them over.
    """
    if not typed.flag("monitor_config.monitor_on"):
        return None
    newer = "monitor_config.health_checkpoint.global_norm_spike_threshold"
    threshold = None if typed.release.before(2, 0) else typed.number(newer)
    if threshold:
        return threshold, typed.origin(newer)
    if not typed.flag("monitor_config.check_for_global_norm"):
        return None
    key, threshold = "monitor_config.global_norm_spike_threshold", 3.0
    if written := typed.number(key):
        return written, typed.origin(key)
    return threshold, _named(typed.origin("monitor_config.check_for_global_norm"), f"with the threshold {threshold}")
