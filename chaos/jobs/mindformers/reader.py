"""The values of a configuration of MindFormers for a scenario and its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.jobs.kind import Examined
from chaos.jobs.mindformers.case import Case
from chaos.jobs.mindformers.configuration import read_configuration
from chaos.jobs.mindformers.experts import experts_of
from chaos.jobs.mindformers.keys import decided, facts, sinks
from chaos.jobs.mindformers.known_keys import misspelt, unread
from chaos.jobs.mindformers.launching import PROGRAM
from chaos.jobs.mindformers.remarks import remarks
from chaos.jobs.mindformers.rules import problems
from chaos.jobs.mindformers.rules_resume import unplanned_resumes
from chaos.jobs.mindformers.saving import saved_format, saving_of
from chaos.jobs.mindformers.typed import Typed
from chaos.jobs.mindformers.version import Release, release_of
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import Problem, ScenarioError, printable, quote
from chaos.scenario.lines import Lines
from chaos.scenario.rules_base import mapped, text, whole

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

_REGISTERED = "--register_path"
_DISPLACES = "replaces the directory from which job.loading: callback loads the agent, so no step would be seen"
_BY_PATH = "use job.loading: path, or leave it out"

_HARMLESS = frozenset({_REGISTERED, "--device_id", "--trust_remote_code"})
"""Arguments of run_mindformer.py that do not matter to a plan."""


def complete(cell: Unfinished) -> Completion:
    """Return the configuration's values of keys that the scenario may leave out."""
    job = mapped(cell.data.get("job"))
    config = text(job.get("config"))
    if config is None or not config.strip():
        message = "a job of kind 'mindformers' is described by a configuration of MindFormers, and none is named"
        hint = "write job.config: the path of its YAML, relative to this file"
        return Completion(problems=(_at(cell.file, cell.lines, "job.config", message, hint),))
    try:
        configuration = read_configuration(config, mapped(job.get("overrides")), cell.file, cell.lines)
    except ScenarioError as error:
        return Completion(problems=error.problems)
    typed = Typed(configuration, _release(cell.file, text(job.get("checkout"))))
    values = tuple(decided(typed, cell))
    further_facts = tuple(facts(typed))
    all_problems = [
        *typed.problems,
        *misspelt(configuration, typed.release),
        *unread(configuration),
        *_undecided(typed, cell, job),
    ]
    return Completion(values, further_facts, tuple(all_problems))


def examine(cell: Cell, scenario_file: Path, traits: JobTraits, *, rehearsed: bool = False) -> Examined:
    """Return the meaning of the configuration for the plan: the job's traits, and what its configuration forbids.

    ``rehearsed`` says that the device layer is not genuine, so that mechanisms that need an Ascend device may be on
    without one. Raises ScenarioError if the configuration cannot be read.
    """
    job = cell.scenario.job
    if job.config is None:
        message = "a job of kind 'mindformers' needs job.config"
        return Examined(traits, (_at(scenario_file, cell.lines, "job", message, ""),))
    configuration = read_configuration(job.config, job.overrides, scenario_file, cell.lines)
    typed = Typed(configuration, _release(scenario_file, job.checkout))
    origin = cell.origins.get("job.protection")
    line = origin.line if origin is not None else cell.lines.nearest("job.protection")[0]
    where = f"{printable(str(scenario_file))}:{line}"
    case = Case(typed, job, job.protection, where, rehearsed)
    broken_rules = [*_arguments(cell, scenario_file), *problems(case)]
    if job.tre is not None and job.tre.recorded:
        message = "a run gives the job an output directory of its own, in which there is no record of an earlier run"
        broken_rules.append(
            _at(scenario_file, cell.lines, "job.tre.recorded", message, "leave it out, or use the kind rehearsal")
        )
    saving = saving_of(typed)
    if saving is not None:
        traits = replace(
            traits,
            end_of_life_prefix=saving.text(typed, "prefix", "CKP")[0],
            file_format=saved_format(configuration, typed.release) if saving.legacy else None,
            rank_directories=saving.legacy,
            sinks_steps=sinks(typed),
            kept=saving.kept(typed),
            unplanned=tuple(unplanned_resumes(case)),
            all_records=case.before(1, 8),
        )
    if experts := experts_of(case):
        traits = replace(traits, replica_stride=experts.stride)
    if saved_format(configuration, typed.release) == "safetensors":
        # Such a file is written at once (MindSpore 2.7 to 2.10): nothing is between its parameters.
        traits = replace(traits, observable=traits.observable - {"checkpoint.write"})
    scheduler = configuration.get("parallel.pipeline_config.pipeline_scheduler")
    if scheduler is not None and scheduler.data == "zero_bubble_v":
        traits = replace(traits, loss_on_rank_0=True)
    return Examined(traits, tuple(broken_rules), tuple(remarks(case)))


def _release(scenario_file: Path, checkout: str | None) -> Release:
    return release_of(None if checkout is None else scenario_file.parent / checkout)


def _undecided(typed: Typed, cell: Unfinished, job: dict[str, Any]) -> Iterator[Problem]:
    """Yield keys that the configuration leaves open and that the scenario leaves out, too, or contradicts."""
    epochs, steps = typed.origin("runner_config.epochs", 1), whole(job.get("steps"))
    in_all = typed.whole("runner_config.epochs", least=1) or 1
    if steps is not None and steps % in_all:
        message = f"{steps} steps are no whole number of steps in each epoch: {epochs}"
        yield _at(cell.file, cell.lines, "job.steps", message, "write the steps of all epochs together")
    if "steps" not in job:
        message = (
            f"how many steps the job trains is not in its configuration: {epochs}, of a data set whose size only the "
        )
        yield _at(cell.file, cell.lines, "job", f"{message}job finds out", "write job.steps")


def _arguments(cell: Cell, scenario_file: Path) -> Iterator[Problem]:
    """Yield arguments that change the configuration without the plan, end the job at its start or lose the agent."""
    job = cell.scenario.job
    refused = False
    for index, argument in enumerate(job.arguments):
        where = f"job.arguments.{index}"
        name = argument.partition("=")[0]
        if name.startswith("--") and name not in _HARMLESS:
            message = f"argument {quote(name)} changes the configuration without the plan's knowledge"
            hint = "write it in job.overrides, such as overrides: {use_parallel: true}"
            yield _at(scenario_file, cell.lines, where, message, hint)
        elif job.checkout is None and not refused:
            refused = True
            message = f"argument {quote(argument)}: without job.checkout a program that takes no arguments is started"
            yield _at(scenario_file, cell.lines, where, message, f"leave it out, or name the checkout of {PROGRAM}")
        elif name == _REGISTERED and job.checkout is not None and job.loading == "callback":
            yield _at(scenario_file, cell.lines, where, f"{_REGISTERED} {_DISPLACES}", _BY_PATH)
    if "REGISTER_PATH" in job.environment and job.loading == "callback":
        yield _at(scenario_file, cell.lines, "job.environment.REGISTER_PATH", f"REGISTER_PATH {_DISPLACES}", _BY_PATH)


def _at(file: Path, lines: Lines, path: str, message: str, hint: str) -> Problem:
    line, column = lines.nearest(path)
    return Problem(printable(str(file)), line, column, message, hint=hint)
