"""Keys of a scenario that a configuration of MindFormers decides, and the defaults that MindFormers takes.

Source: MindFormers, mindformers/tools/register/template.py (2.1) for the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.jobs.mindformers.configuration import callbacks
from chaos.jobs.mindformers.switches import SWITCHES, mechanisms
from chaos.jobs.mindformers.typed import Typed
from chaos.scenario.completion import Filled, Origin, Unfinished
from chaos.scenario.errors import printable
from chaos.scenario.rules_base import mapped, text

SIZES = ("data_parallel", "model_parallel", "pipeline_stage")


def decided(typed: Typed, cell: Unfinished) -> Iterator[Filled]:
    """The values that the configuration, and the job's environment, give to keys of the scenario."""
    yield from _sizes(typed)
    sink = typed.whole("runner_config.sink_size", least=-1)
    yield Filled(("job", "sink_size"), 1 if sink is None else sink, typed.origin("runner_config.sink_size", 1))
    yield from _interval(typed)
    seed = typed.whole("seed")
    yield Filled(("job", "seed"), 1 if seed is None else seed, typed.origin("seed", 1))
    yield from _protection(cell)


def _sizes(typed: Typed) -> Iterator[Filled]:
    """Parallel sizes, and the ranks that they multiply to."""
    ranks = 1
    parallel = bool(typed.flag("use_parallel"))
    for name in SIZES:
        key = f"parallel_config.{name}"
        size = (typed.whole(key, least=1) if parallel else None) or 1
        ranks *= size
        yield Filled(("cluster", "parallel", name), size, typed.origin(key, 1) if parallel else _alone(typed))
    yield Filled(("cluster", "ranks"), ranks, _product(typed, ranks) if parallel else _alone(typed))


def _alone(typed: Typed) -> Origin:
    return typed.origin("use_parallel", "false: one rank")


def _product(typed: Typed, ranks: int) -> Origin:
    value = typed.configuration.get("parallel_config")
    where = typed.origin("parallel_config", "{}")
    return Origin(where.file, where.line if value else 0, where.column, "parallel_config", f"{ranks} ranks in all")


def _interval(typed: Typed) -> Iterator[Filled]:
    for one in callbacks(typed.configuration):
        steps = one.data.get("save_checkpoint_steps")
        if one.data.get("type") is not None and one.data["type"].data == "CheckpointMonitor" and steps is not None:
            origin = Origin(steps.file, steps.line, steps.column, "save_checkpoint_steps", steps.shown)
            yield Filled(("job", "checkpoint_interval"), steps.data, origin)


def _protection(cell: Unfinished) -> Iterator[Filled]:
    """The mechanisms that are on, where the scenario writes the variable itself."""
    environment: Mapping[str, Any] = mapped(mapped(cell.data.get("job")).get("environment"))
    written = text(environment.get(SWITCHES))
    if written is not None:
        line, column = cell.lines.nearest(f"job.environment.{SWITCHES}")
        origin = Origin(printable(str(cell.file)), line, column, SWITCHES, written)
        yield Filled(("job", "protection"), list(mechanisms(written)), origin)
