"""Keys of a scenario that a configuration of MindFormers decides, and the defaults that MindFormers takes.

Sources: MindFormers, mindformers/tools/register/template.py (2.1) and the signature of CheckpointMonitor (1.3 to 2.1)
for the defaults, mindformers/trainer/utils.py (2.1) for the new layout of checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from chaos.jobs.mindformers.configuration import Configuration, callbacks
from chaos.jobs.mindformers.switches import SWITCHES, mechanisms
from chaos.jobs.mindformers.typed import Typed
from chaos.jobs.mindformers.yaml_file import Value
from chaos.scenario.completion import Filled, Origin, Unfinished
from chaos.scenario.errors import printable
from chaos.scenario.rules_base import mapped, text, whole

MONITOR = "CheckpointMonitor"
"""The callback that saves periodic checkpoints."""

SECTIONS = ("runner_config", "parallel_config", "parallel", "monitor_config", "context", "checkpoint")
"""Mappings that keys are read from."""

ALONE = frozenset({"STAND_ALONE", "MANUAL_PARALLEL"})
DATA_ONLY = frozenset({0, "DATA_PARALLEL"})
"""Values of ``parallel.parallel_mode``: every rank for itself, and data parallelism over all ranks that there are.

In every other mode the parallel sizes of ``parallel_config`` multiply to the number of ranks.
"""


def decided(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """The values that the configuration, and the job's environment, give to keys of the scenario."""
    for name in SECTIONS:
        typed.section(name, dict)
    typed.section("callbacks", list)
    yield from _sizes(typed, cell)
    device = typed.text("context.device_target")
    yield Filled(("job", "device"), device or "Ascend", typed.origin("context.device_target", "Ascend"))
    sink = typed.whole("runner_config.sink_size", least=-1)
    if not sinks(typed):
        yield Filled(("job", "sink_size"), 1, _named(typed.origin("runner_config.sink_mode"), "one step at a time"))
    elif sink is None or sink > 0:
        yield Filled(("job", "sink_size"), 1 if sink is None else sink, typed.origin("runner_config.sink_size", 1))
    seed = typed.whole("seed", most=2**32 - 1)
    yield Filled(("job", "seed"), 1 if seed is None else seed, typed.origin("seed", 1))
    yield from _epochs(typed, cell)
    saving = saving_of(typed)
    if saving is not None:
        interval = saving.interval(typed)
        yield Filled(("job", "checkpoint_interval"), interval[0], interval[1])
        in_background = saving.flag(typed, "async_save")
        if in_background[0]:
            yield Filled(("job", "storage", "asynchronous_saving"), True, in_background[1])
    yield from _watch(typed)
    yield from _protection(cell)


def sinks(typed: Typed) -> bool:
    """Whether steps are sunk to the device. Without that MindFormers does not train by the sink size.

    The default that MindFormers itself writes is the number 1.
    """
    return typed.flag("runner_config.sink_mode", numbers=True) is not False


def facts(typed: Typed) -> Iterator[tuple[str, Origin]]:
    """What else the configuration says that a reader of the plan wants to know."""
    yield "batch size", typed.origin("runner_config.batch_size", 1)
    yield "output directory", _named(typed.origin("output_dir", "./output"), "a run has one of its own")
    for name, keys in _OPTIONAL.items():
        key = next((key for key in keys if (value := typed.configuration.get(key)) is not None and value.data), None)
        if key is not None:
            yield name, typed.origin(key)
    saving = saving_of(typed)
    if saving is not None:
        yield "checkpoint layout", _layout(typed, saving)
        yield "checkpoint prefix", saving.text(typed, "prefix", "CKP")[1]
        yield "checkpoints kept", saving.origin("keep_checkpoint_max" if saving.legacy else "save_max", 5)


_OPTIONAL = {
    "jit level": ("context.jit_config.jit_level", "context.jit_level"),
    "weights from": ("checkpoint.load_path", "load_checkpoint"),
}
"""What a plan tells only where the configuration has it."""


@dataclass(frozen=True)
class Saving:
    """How periodic checkpoints are saved: by which callback, in which layout, and the section that counts for it."""

    configuration: Configuration
    callback: Value
    legacy: bool

    def value(self, key: str) -> Value | None:
        """A value of the new layout's section or, where that has none, of the callback."""
        if not self.legacy and (value := self.configuration.get(f"checkpoint.{_NEW.get(key, key)}")) is not None:
            return value if value.data is not None else None
        value = self.callback.data.get(key)
        return None if value is None or value.data is None else value

    def origin(self, key: str, default: object) -> Origin:
        """Where a value stands, or that it is left out and what that means."""
        value = self.value(key)
        return self.configuration.origin(value.key if value is not None else f"{MONITOR}.{key}", value, default)

    def interval(self, typed: Typed) -> tuple[int, Origin]:
        """Steps between checkpoints."""
        value = self.value("save_checkpoint_steps")
        steps = 1 if value is None else typed.checked("save_checkpoint_steps", value, int, 1)
        return steps, self.origin("save_checkpoint_steps", 1)

    def flag(self, typed: Typed, key: str) -> tuple[bool, Origin]:
        """A switch that is off by default."""
        value = self.value(key)
        return value is not None and value.data not in (False, None), self.origin(key, False)

    def kept(self, typed: Typed) -> int:
        """How many of a rank's checkpoints are kept. Without a limit MindSpore keeps one (CheckpointConfig, 2.10)."""
        value = self.value("keep_checkpoint_max")
        return 5 if value is None else typed.checked("keep_checkpoint_max", value, int, 5) or 1

    def text(self, typed: Typed, key: str, default: str) -> tuple[str, Origin]:
        """A text."""
        value = self.value(key)
        found = default if value is None else typed.checked(key, value, str, default)
        return found, self.origin(key, default)


_NEW = {"save_checkpoint_steps": "save_interleaved_steps", "keep_checkpoint_max": "save_max", "directory": "save_path"}


def saving_of(typed: Typed) -> Saving | None:
    """How periodic checkpoints are saved, None where no callback saves them. Of two callbacks the last one counts.

    The new layout is chosen by the callback's own key in MindFormers 1.7, by the one at the top from 1.8 on, and by the
    section ``checkpoint`` in 2.1.
    """
    found = None
    for one in callbacks(typed.configuration):
        kind = one.data.get("type")
        if kind is not None and kind.data == MONITOR:
            found = one
    if found is None:
        return None
    section, own = typed.configuration.get("checkpoint"), found.data.get("use_legacy_format")
    legacy = not (section is not None and section.data) and typed.flag("use_legacy_format") is not False
    return Saving(typed.configuration, found, legacy and not (own is not None and own.data is False))


def _layout(typed: Typed, saving: Saving) -> Origin:
    words = "legacy" if saving.legacy else "new"
    section = typed.configuration.get("checkpoint")
    if section is not None and section.data:
        return Origin(section.file, section.line, section.column, "checkpoint", words)
    found = typed.origin("use_legacy_format", words)
    if not saving.legacy and typed.flag("use_legacy_format") is not False:
        found = saving.origin("use_legacy_format", words)
    return _named(found, words) if found.line else found


def _sizes(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """Parallel sizes, and the ranks that they multiply to.

    Context parallelism counts as data parallelism here: the ranks that share a sequence hold the same weights. In pure
    data parallelism MindFormers takes as many ranks as there are, so the scenario may say another number.
    """
    mode = typed.configuration.get("parallel.parallel_mode")
    if mode is not None and mode.data in DATA_ONLY and typed.flag("use_parallel"):
        key = "parallel_config.data_parallel"
        if "ranks" not in mapped(cell.data.get("cluster")):
            yield Filled(("cluster", "ranks"), typed.whole(key, least=1) or 1, typed.origin(key, 1))
        return
    if not typed.flag("use_parallel") or (mode is not None and mode.data in ALONE):
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
    size_key = "parallel.parallel_optimizer_config.optimizer_weight_shard_size"
    size = typed.whole(size_key, least=-1)
    if sharded:
        copies = data * context
        origin = typed.origin(size_key, f"{copies}: all data-parallel ranks")
        if size is None or size < 1 or copies % size:
            # MindSpore (set_auto_parallel_context): a size that does not divide the ranks takes no effect.
            origin = _named(origin, f"all {copies} data-parallel ranks") if size is not None else origin
            size = copies
        yield Filled((*parallel, "optimizer_weight_shard_size"), size, origin)


def _epochs(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """Steps of one epoch, where the scenario says how many there are in all."""
    steps, epochs = whole(mapped(cell.data.get("job")).get("steps")), typed.whole("runner_config.epochs", least=1) or 1
    if steps is not None and steps > 0 and steps % epochs == 0:
        origin = _named(typed.origin("runner_config.epochs", 1), f"{steps // epochs} steps in each")
        yield Filled(("job", "steps_per_epoch"), steps // epochs, origin)


def _named(origin: Origin, words: str) -> Origin:
    return replace(origin, value=f"{origin.value} ({words})")


def _watch(typed: Typed) -> Iterator[Filled]:
    """The watch over the global norm."""
    found = watch_of(typed)
    if found is not None:
        yield Filled(("job", "tre", "threshold"), found[0], found[1])
        if typed.flag("use_skip_data_by_global_norm"):
            yield Filled(("job", "tre", "skip_data"), True, typed.origin("use_skip_data_by_global_norm"))


def watch_of(typed: Typed) -> tuple[float, Origin] | None:
    """The threshold from which a global norm is abnormal, and where it stands; None where nobody looks.

    ``health_checkpoint`` (2.1) counts where it has a threshold. Without one the keys of 1.6 count; MindFormers 2.1 then
    carries them over.
    """
    if not typed.flag("monitor_config.monitor_on"):
        return None
    newer = "monitor_config.health_checkpoint.global_norm_spike_threshold"
    threshold = typed.number(newer)
    if threshold:
        return threshold, typed.origin(newer)
    if not typed.flag("monitor_config.check_for_global_norm"):
        return None
    key = "monitor_config.global_norm_spike_threshold"
    return typed.number(key) or 3.0, typed.origin(key, 3.0)


def _protection(cell: Unfinished) -> Iterator[Filled]:
    """The mechanisms that are on, where the scenario writes the variable itself."""
    environment = mapped(mapped(cell.data.get("job")).get("environment"))
    written = text(environment.get(SWITCHES))
    if written is not None:
        line, column = cell.lines.nearest(f"job.environment.{SWITCHES}")
        origin = Origin(printable(str(cell.file)), line, column, SWITCHES, written)
        yield Filled(("job", "protection"), list(mechanisms(written)), origin)
