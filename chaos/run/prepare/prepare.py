"""From a scenario's cell to its plan, with the registries' knowledge of its job and its faults."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from chaos.base.registry import UnknownName, registry
from chaos.doctor import Machine, probe
from chaos.faults.behaviours import Lasting
from chaos.faults.kind import FaultKind
from chaos.jobs.kind import Configured, Examined, JobKind, job_kind
from chaos.jobs.switches import switch_problems, switch_remarks, switched_by_environment
from chaos.plan.build import build_plan
from chaos.plan.effect import effect_of
from chaos.plan.job_effect import as_effect
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.source import Source
from chaos.run.prepare.inputs import planned_inputs
from chaos.run.prepare.known_failure import unknown_checks
from chaos.run.prepare.measured_job import changes_since
from chaos.run.prepare.needs import chosen_sdk, needs_mindio, needs_of_job, needs_of_scenario
from chaos.run.prepare.on_platform import platform_problems
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.registered import Registered, look_up_names
from chaos.run.prepare.versions import with_timings_of
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import Problem, printable, quote
from chaos.scenario.models.defaults import DEFAULT_KIND
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.names import KnownNames
from chaos.scenario.rules_base import mapped, text

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario


def known_names() -> KnownNames:
    """Return the names that a scenario may use: everything registered. Imports none of it.

    Raises RegistryError where nothing is registered: then the installation is at fault, and no scenario.
    """
    return KnownNames(
        fault_kinds=registry("faults").some_names(),
        job_kinds=registry("jobs").some_names(),
        platforms=registry("platforms").some_names(),
        complete=completion,
    )


def completion(cell: Unfinished) -> Completion | None:
    """Return the completion of the cell by the job's environment and description files. Imports the job's kind.

    None where the kind is not known.
    """
    job = mapped(cell.data.get("job"))
    kind = text(job.get("kind", DEFAULT_KIND))
    try:
        loaded = None if kind is None else job_kind(kind)
    except UnknownName:
        return None  # which the rules say
    switches = tuple(switched_by_environment(cell))
    if isinstance(loaded, Configured):
        completed = loaded.completed(cell)
        return replace(completed, values=(*completed.values, *switches))
    if kind is None or "config" not in job:
        return Completion(switches)
    line, column = cell.lines.nearest("job.config")
    message = f"job kind {quote(kind)} is described by no configuration of a framework"
    hint = "leave job.config out, or use the kind mindformers"
    return Completion(problems=(Problem(printable(str(cell.file)), line, column, message, "config", hint),))


def examine(loaded: LoadedScenario, cell: Cell, registered: Registered) -> Examined:
    """Return the plan's knowledge of the cell's job. Raises ScenarioError where the job's files cannot be read."""
    kind = registered.job
    if isinstance(kind, Configured):
        examined = kind.examined(cell, loaded.path)
    else:
        scenario, elsewhere = cell.scenario, registered.platform.met(cell.scenario)
        traits = kind.traits_for(scenario, loaded.path.parent, elsewhere)
        examined = Examined(traits, remarks=tuple(kind.remarks(scenario)))
    return replace(examined, problems=(*switch_problems(cell, loaded.path), *examined.problems))


def plan_cell(loaded: LoadedScenario, cell: Cell, draw_seed: int | None = None, machine: Machine | None = None) -> Plan:
    """Work out everything that should happen in one matrix cell.

    ``draw_seed`` seeds the first random target that has no seed of its own, the next target gets the number after it,
    and so on; by default it is fresh. The plan holds the seeds, so that a later call can reuse them. Raises
    ScenarioError where the plan shows the scenario to be impossible, and RegistryError when a job or fault kind cannot
    be loaded.
    """
    registered = look_up_names(cell.scenario)
    return _planned(loaded, cell, registered, examine(loaded, cell, registered), draw_seed, machine)


def prepare(loaded: LoadedScenario, cell: Cell, sdk: str, draw_seed: int | None = None) -> Prepared:
    """Plan a cell and look up everything that a run of it works with. ``sdk`` is the requested one.

    Raises as :func:`plan_cell` does, and Refused where the SDK is missing or an input of the job cannot be read.
    """
    registered = look_up_names(cell.scenario)
    chosen = chosen_sdk(sdk, cell.scenario, registered)
    cell = with_timings_of(chosen, cell)
    examined = examine(loaded, cell, registered)
    return Prepared(
        loaded,
        cell,
        chosen,
        _planned(loaded, cell, registered, examined, draw_seed),
        registered,
        examined.traits,
        needs_of_scenario(cell.scenario, registered, loaded.path.parent),
        needs_of_job(cell.scenario, chosen, registered, loaded.path.parent),
        planned_inputs(registered, cell.scenario, loaded.path.parent, os.environ),
    )


def _planned(
    loaded: LoadedScenario,
    cell: Cell,
    registered: Registered,
    examined: Examined,
    draw_seed: int | None,
    machine: Machine | None = None,
) -> Plan:
    scenario = cell.scenario
    problems = (
        *examined.problems,
        *_missing_files(loaded, cell, registered.job),
        *platform_problems(loaded, cell, registered),
        *unknown_checks(cell, str(loaded.path)),
    )
    plan = build_plan(
        scenario,
        Source(str(loaded.path), cell.lines, cell.name, cell.origins, cell.facts, problems),
        traits=examined.traits,
        kinds={name: planned_kind(kind, scenario) for name, kind in registered.kinds.items()},
        draw_seed=count(fresh_seed() if draw_seed is None else draw_seed).__next__,
        platform=registered.platform.traits,
    )
    equivalence = plan.equivalence
    if not equivalence.exact:
        outdated_by = tuple(changes_since(registered.job, scenario, loaded.path.parent))
        equivalence = replace(equivalence, outdated_by=outdated_by)
    chosen = _chosen(plan, scenario, registered, machine or Machine())
    outdated = (f"{why[0].upper()}{why[1:]}.",) if (why := equivalence.why_outdated) else ()
    explanation = plan.explanation
    reasons = (*explanation.reasons, *examined.remarks, *switch_remarks(cell), *chosen, *outdated)
    return replace(plan, equivalence=equivalence, explanation=replace(explanation, reasons=reasons))


def _missing_files(loaded: LoadedScenario, cell: Cell, kind: JobKind) -> Iterator[Problem]:
    """Yield the files that the scenario's job names and this machine lacks, each with its place."""
    for path, message, hint in kind.missing_files(cell.scenario, loaded.path.parent):
        line, column = cell.lines.nearest(path)
        yield Problem(printable(str(loaded.path)), line, column, printable(message), hint=hint)


def _chosen(plan: Plan, scenario: Scenario, registered: Registered, machine: Machine) -> Iterator[str]:
    """Yield how this machine, or the platform's, makes each fault with several ways, in sentences.

    One more sentence names a comparison that nobody has made.
    """
    met = registered.platform.met(scenario)
    if "mindspore" in met and "mindspore" in needs_of_job(scenario, registered=registered) and needs_mindio(scenario):
        yield (
            "MindSpore and MindIO on the machines of the ranks were not compared with each other: run chaos doctor "
            "there."
        )
    for fault in plan.faults:
        need = registered.kinds[fault.kind].chosen_by
        if need is None:
            continue
        if need in met:
            yield f"Fault {fault.id} is made by {met[need]}."
        else:
            (probed,) = probe((need,), machine)
            yield f"Fault {fault.id} is made by {probed.seen if probed.ok else f'nothing here: {probed.seen}'}."


def planned_kind(kind: FaultKind, scenario: Scenario) -> PlannedKind:
    """Return the plan's knowledge of a kind in this scenario."""
    return PlannedKind(
        as_effect(kind.effect_in(scenario)),
        hazard=kind.hazard,
        parameters=kind.parameters,
        required_place=kind.required_place,
        lasting=isinstance(kind, Lasting),
        on_rank=effect_of(kind.name),
    )


def fresh_seed() -> int:
    """Return a fresh seed, small enough to be typed again."""
    return secrets.randbelow(10**9)
