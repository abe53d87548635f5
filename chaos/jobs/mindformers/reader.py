"""What a configuration of MindFormers says to a scenario and to its plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.jobs.kind import Examined
from chaos.jobs.mindformers.configuration import read_configuration
from chaos.jobs.mindformers.keys import decided
from chaos.jobs.mindformers.typed import Typed
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import Problem, ScenarioError, printable
from chaos.scenario.rules_base import mapped, text

if TYPE_CHECKING:
    from chaos.scenario.load import Cell


def complete(cell: Unfinished) -> Completion:
    """What the configuration says of keys that the scenario may leave out."""
    job = mapped(cell.data.get("job"))
    config = text(job.get("config"))
    if config is None or not config.strip():
        line, column = cell.lines.nearest("job.config")
        message = "a job of kind 'mindformers' is described by a configuration of MindFormers, and none is named"
        hint = "write job.config: the path of its YAML, relative to this file"
        return Completion(problems=(Problem(printable(str(cell.file)), line, column, message, hint=hint),))
    try:
        configuration = read_configuration(config, mapped(job.get("overrides")), cell.file, cell.lines)
    except ScenarioError as error:
        return Completion(problems=error.problems)
    typed = Typed(configuration)
    values = tuple(decided(typed, cell))
    return Completion(values=values, problems=tuple(typed.problems))


def examine(cell: Cell, scenario_file: Path, traits: JobTraits) -> Examined:
    """What the configuration means for the plan. Raises ScenarioError where it cannot be read."""
    job = cell.scenario.job
    if job.config is None:
        return Examined(traits)
    configuration = read_configuration(job.config, job.overrides, scenario_file, cell.lines)
    prefix = configuration.get("trainer.model_name")
    name = prefix.data if prefix is not None and isinstance(prefix.data, str) else "mindformers"
    return Examined(replace(traits, end_of_life_prefix=name))
