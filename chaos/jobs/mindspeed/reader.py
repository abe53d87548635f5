"""The arguments of MindSpeed-LLM, read for a scenario and its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.jobs.kind import Examined
from chaos.jobs.mindspeed.arguments import Argument, Arguments
from chaos.jobs.mindspeed.case import PAGE, Case, case_of
from chaos.jobs.mindspeed.constraints import constraint_problems
from chaos.jobs.mindspeed.fault_rules import check_faults
from chaos.jobs.mindspeed.resume import resume_problems
from chaos.jobs.mindspeed.sizes import DISTRIBUTED, PIPELINE, TENSOR, sizes_of
from chaos.jobs.mindspeed.switches import MASTER, VARIABLE, Switches, switches_of, takes
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Filled, Origin, Unfinished
from chaos.scenario.errors import Problem, printable
from chaos.scenario.models.mechanisms import switch_names
from chaos.scenario.rules_base import mapped, text, whole

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

_WHOLE = {"--train-iters": "steps", "--save-interval": "checkpoint_interval"}
"""Argument → key of the job that has the same number."""


def complete(cell: Unfinished) -> Completion:
    """Return the arguments' values of keys that the scenario may leave out."""
    job = mapped(cell.data.get("job"))
    arguments = Arguments(_listed(job.get("arguments")))
    allowed = [str(word) for word in _listed(job.get("strategies"))] if job.get("agent") is True else []
    switches = switches_of(arguments, text(mapped(job.get("environment")).get(VARIABLE)), allowed)
    values = [
        *_numbers(cell, arguments),
        *_protection(cell, switches, _listed(job.get("protection"))),
        *_parallel(cell, arguments, protected=switches.available is not None),
    ]
    if "device" not in job:
        values.append(Filled(("job", "device"), "Ascend", _origin(cell, "job.kind", "device", "Ascend, its only one")))
    return Completion(tuple(values), problems=tuple(_unusable(cell, arguments)))


def examine(cell: Cell, scenario_file: Path, traits: JobTraits) -> Examined:
    """Return the meaning of the arguments for the plan."""
    case = case_of(cell.scenario, scenario_file, cell.lines)
    found = (*constraint_problems(case), *resume_problems(case))
    known = replace(
        traits,
        mechanisms=takes(),
        replica_stride=case.sizes.stride,
        gathers_by=case.sizes.slices,
        # With experts a file's name has the number of the experts, too.
        file_format=None if case.sizes.expert > 1 else "pt",
        rules=partial(check_faults, case),
    )
    return Examined(known, found, tuple(remarks(case)))


def remarks(case: Case) -> Iterator[str]:
    """Yield what the plan of such a job rests on, and what follows a save."""
    yield (
        "No run of MindSpeed-LLM was judged on hardware: this plan follows the vendor's documents, the source of "
        "MindSpeed-LLM (c77308a), and runs of MindIO TFT under torchrun on a CPU."
    )
    if case.on is None:
        return
    yield (
        "An end-of-life checkpoint has _tmp behind its directory's name until it is complete; about 10 s after the "
        "save the ranks exit with code 2."
    )
    elastic = case.switches.get("elastic-training")
    if elastic is not None and not case.scenario.job.agent:
        yield (
            f"{elastic.spelled} works with the components of MindCluster only ({PAGE}), and job.agent is false, so no "
            "ranks leave and the others do not train on without them."
        )
    if not case.scenario.job.agent:
        yield (
            "torchrun kills all ranks 30 s after the first has failed, and the save begins after 10 s: one that takes "
            "more than about 20 s is lost, unless torchrun imports mindio_ttp.framework_ttp (MindIO TFT with "
            "MindSpeed-LLM)."
        )
    yield "The controller listens at port 8000, which MindSpeed-LLM sets and no variable changes."


def _numbers(cell: Unfinished, arguments: Arguments) -> Iterator[Filled]:
    for name, key in _WHOLE.items():
        argument = arguments.get(name)
        if argument is not None and (number := arguments.whole(name, 0)):
            yield Filled(("job", key), number, _of(cell, argument, str(number)))


def _protection(cell: Unfinished, switches: Switches, written: list[object]) -> Iterator[Filled]:
    """Yield the mechanisms that are on. Those of the launcher have no switch, and are as the scenario has them."""
    of_launcher = [name for name in written if name not in switch_names()]
    if switches.available is not None:
        value = [*switches.mechanisms, *of_launcher]
        origin = _origin(cell, switches.available.path, switches.available.spelled, ", ".join(switches.mechanisms))
        yield Filled(("job", "protection"), value, origin)
    elif len(of_launcher) < len(written):
        yield Filled(
            ("job", "protection"), of_launcher, Origin(printable(str(cell.file)), 0, 0, MASTER, "no mechanism is on")
        )


def _parallel(cell: Unfinished, arguments: Arguments, *, protected: bool) -> Iterator[Filled]:
    ranks = whole(mapped(cell.data.get("cluster")).get("ranks"))
    if ranks is None or ranks < 1:
        return
    sizes = sizes_of(arguments, ranks, protected=protected)
    if not sizes.fit:
        return
    parallel = ("cluster", "parallel")
    tensor = _origin(cell, _path(arguments, TENSOR), TENSOR, str(sizes.tensor))
    stages = _origin(cell, _path(arguments, PIPELINE), PIPELINE, str(sizes.pipeline))
    data = _origin(cell, "cluster.ranks", "ranks", f"{ranks}, over {TENSOR} and {PIPELINE}")
    yield Filled((*parallel, "data_parallel"), sizes.data, data)
    yield Filled((*parallel, "model_parallel"), sizes.tensor, tensor)
    yield Filled((*parallel, "pipeline_stage"), sizes.pipeline, stages)
    origin = _origin(cell, _path(arguments, DISTRIBUTED), DISTRIBUTED, f"{sizes.replicas} replicas")
    yield Filled((*parallel, "enable_parallel_optimizer"), sizes.shards is not None, origin)
    if sizes.shards is not None:
        yield Filled((*parallel, "optimizer_weight_shard_size"), sizes.shards, origin)
    elif sizes.spread:
        yield Filled(
            (*parallel, "shard"), "optimizer", _origin(cell, _path(arguments, DISTRIBUTED), DISTRIBUTED, "shards")
        )


def _unusable(cell: Unfinished, arguments: Arguments) -> Iterator[Problem]:
    job = mapped(cell.data.get("job"))
    if "config" in job:
        line, column = cell.lines.nearest("job.config")
        message = "a job of MindSpeed-LLM is described by its arguments, and by no configuration"
        yield Problem(printable(str(cell.file)), line, column, message, "config", "write job.arguments")
    ranks = whole(mapped(cell.data.get("cluster")).get("ranks"))
    if ranks and not (sizes := sizes_of(arguments, ranks, protected=False)).fit:
        line, column = cell.lines.nearest("cluster.ranks")
        product = f"{sizes.tensor} x {sizes.pipeline} x {sizes.context}"
        message = f"{ranks} ranks are no multiple of the tensor, pipeline and context parallel sizes {product}"
        yield Problem(printable(str(cell.file)), line, column, message, str(ranks), "change one of them")


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _path(arguments: Arguments, name: str) -> str:
    argument = arguments.get(name)
    return "job.arguments" if argument is None else argument.path


def _of(cell: Unfinished, argument: Argument, value: str) -> Origin:
    return _origin(cell, argument.path, argument.name, value)


def _origin(cell: Unfinished, path: str, key: str, value: str) -> Origin:
    line, column = cell.lines.nearest(path)
    return Origin(printable(str(cell.file)), line, column, key, value)
