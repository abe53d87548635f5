"""From a scenario's cell to its plan, with what the registries know about its job and its faults."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.base.refusal import Refused
from chaos.base.registry import UnknownName, registry
from chaos.doctor import BASE, INTERFACE, OWN_AGENT, Machine, needs_of, probe
from chaos.faults.behaviours import Lasting
from chaos.faults.kind import FaultKind
from chaos.faults.registered import fault_kind
from chaos.jobs.kind import Configured, Examined, JobError, JobKind, job_kind
from chaos.jobs.switches import switch_problems, switch_remarks, switched_by_environment
from chaos.plan.build import build_plan
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.recovery.mechanism import NEEDS, REPLACING, switched_on
from chaos.plan.source import Source
from chaos.platforms.kind import PlatformKind
from chaos.platforms.remote_requirements import MODULES
from chaos.run.prepare.inputs import Inputs
from chaos.run.prepare.known_failure import unknown_checks
from chaos.run.prepare.on_platform import named_platform, platform_of, platform_problems
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.versions import choose_sdk, with_timings_of
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import Problem, printable, quote
from chaos.scenario.models.job import DEFAULT_KIND
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.names import KnownNames
from chaos.scenario.rules_base import mapped, text

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario


def known_names() -> KnownNames:
    """The names that a scenario may use: whatever is registered. Imports none of it.

    Raises RegistryError where nothing is: the installation is at fault then, and no scenario.
    """
    return KnownNames(
        fault_kinds=registry("faults").some_names(),
        job_kinds=registry("jobs").some_names(),
        platforms=registry("platforms").some_names(),
        complete=completion,
    )


def completion(cell: Unfinished) -> Completion | None:
    """What the job's environment, and the files that it is described by, say of the cell. Imports the job's kind.

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
        own = loaded.completed(cell)
        return replace(own, values=(*own.values, *switches))
    if kind is None or "config" not in job:
        return Completion(switches)
    line, column = cell.lines.nearest("job.config")
    message = f"job kind {quote(kind)} is described by no configuration of a framework"
    hint = "leave job.config out, or use the kind mindformers"
    return Completion(problems=(Problem(printable(str(cell.file)), line, column, message, "config", hint),))


def examine(loaded: LoadedScenario, cell: Cell) -> Examined:
    """What the plan has to know of the cell's job. Raises ScenarioError where the job's own files cannot be read."""
    kind = job_kind(cell.scenario.job.kind)
    examined = kind.examined(cell, loaded.path) if isinstance(kind, Configured) else Examined(kind.traits)
    return replace(examined, problems=(*switch_problems(cell, loaded.path), *examined.problems))


def plan_cell(loaded: LoadedScenario, cell: Cell, draw_seed: int | None = None, machine: Machine | None = None) -> Plan:
    """Work out what should happen in one matrix cell.

    ``draw_seed`` seeds the first random target that has no seed of its own, the next one gets the number after it, and
    so on; by default it is fresh. The plan holds the seeds, so that they can be given back. Raises ScenarioError where
    the plan shows the scenario to be impossible, and RegistryError when a job or fault kind cannot be loaded.
    """
    return _planned(loaded, cell, examine(loaded, cell), kinds_of(cell.scenario), draw_seed, machine)


def prepare(loaded: LoadedScenario, cell: Cell, sdk: str, draw_seed: int | None = None) -> Prepared:
    """Plan a cell and look up everything that a run of it works with. ``sdk`` is the one that is asked for.

    Raises as :func:`plan_cell` does, and Refused where the SDK is not there or what the job reads cannot be read.
    """
    chosen = chosen_sdk(sdk, cell.scenario)
    cell = with_timings_of(chosen, cell)
    scenario = cell.scenario
    examined, kinds = examine(loaded, cell), kinds_of(scenario)
    job, platform = job_kind(scenario.job.kind), platform_of(scenario)
    plan = _planned(loaded, cell, examined, kinds, draw_seed)
    inputs = _inputs(job, scenario, loaded.path.parent, platform)
    needs = needs_of_scenario(scenario)
    return Prepared(loaded, cell, chosen, plan, job, examined.traits, platform, kinds, needs, inputs)


def _inputs(job: JobKind, scenario: Scenario, directory: Path, platform: PlatformKind) -> Inputs:
    try:
        # Of nodes that have an environment of their own nothing of this one comes to the job.
        return Inputs(job, scenario, directory, {} if platform.own_environment else dict(os.environ))
    except JobError as error:
        raise Refused(str(error)) from error


def _planned(
    loaded: LoadedScenario,
    cell: Cell,
    examined: Examined,
    faults: Mapping[str, FaultKind],
    draw_seed: int | None,
    machine: Machine | None = None,
) -> Plan:
    scenario = cell.scenario
    found = (
        *examined.problems,
        *_missing_files(loaded, cell),
        *platform_problems(loaded, cell),
        *unknown_checks(cell, str(loaded.path)),
    )
    plan = build_plan(
        scenario,
        Source(str(loaded.path), cell.lines, cell.name, cell.origins, cell.facts, found),
        traits=examined.traits,
        kinds={name: planned_kind(kind, scenario) for name, kind in faults.items()},
        draw_seed=count(fresh_seed() if draw_seed is None else draw_seed).__next__,
        platform=named_platform(scenario).traits,
    )
    chosen = _chosen(plan, scenario, faults, machine or Machine())
    said = plan.explanation
    reasons = (*said.reasons, *examined.remarks, *switch_remarks(cell), *chosen)
    return replace(plan, explanation=replace(said, reasons=reasons))


def _missing_files(loaded: LoadedScenario, cell: Cell) -> Iterator[Problem]:
    """What the scenario's job names and this machine does not have, each with its place."""
    kind = job_kind(cell.scenario.job.kind)
    for path, message, hint in kind.missing_files(cell.scenario, loaded.path.parent):
        line, column = cell.lines.nearest(path)
        yield Problem(printable(str(loaded.path)), line, column, printable(message), hint=hint)


def _chosen(plan: Plan, scenario: Scenario, faults: Mapping[str, FaultKind], machine: Machine) -> Iterator[str]:
    """By what of several ways this machine, or the platform's, makes each fault that has such, and what nobody has
    looked at, in sentences."""
    met = _met_by_platform(scenario)
    if "mindspore" in met and "mindspore" in needs_of_job(scenario) and _needs_mindio(scenario):
        yield (
            "Whether MindSpore and MindIO on the machines of the ranks fit each other was not compared: chaos doctor "
            "says it there."
        )
    for fault in plan.faults:
        need = faults[fault.kind].chosen_by
        if need is None:
            continue
        if need in met:
            yield f"Fault {fault.id} is made by {met[need]}."
        else:
            (found,) = probe((need,), machine)
            yield f"Fault {fault.id} is made by {found.seen if found.ok else f'nothing here: {found.seen}'}."


def kinds_of(scenario: Scenario) -> Mapping[str, FaultKind]:
    """The kinds of the scenario's faults by their names; the registry is asked once for each."""
    return {name: fault_kind(name) for name in sorted({fault.kind for fault in scenario.faults})}


def planned_kind(kind: FaultKind, scenario: Scenario) -> PlannedKind:
    """What the plan of this scenario has to know of a kind."""
    return PlannedKind(
        kind.effect_in(scenario),
        hazard=kind.hazard,
        parameters=kind.parameters,
        asks=kind.asks,
        lasting=isinstance(kind, Lasting),
        on_rank=effect_of(kind.name),
    )


def fresh_seed() -> int:
    """A seed that nobody has chosen: small enough to be typed again."""
    return secrets.randbelow(10**9)


def _needs_of_platform(scenario: Scenario) -> tuple[str, ...]:
    return (*BASE, *platform_of(scenario).needed(scenario))


def _met_by_platform(scenario: Scenario) -> Mapping[str, str]:
    """What job and faults need that the machines of the platform have, this one or not; by what, in words."""
    return platform_of(scenario).met(scenario)


def chosen_sdk(wanted: str, scenario: Scenario) -> str:
    """``standin`` or ``vendor``: whose SDK the run is to have. Raises Refused where the vendor's is not there.

    Of machines that bring their own packages it is asked when they are there.
    """
    return choose_sdk(wanted, met_there="mindio_ttp" in _met_by_platform(scenario))


def needs_of_job(scenario: Scenario, sdk: str = "standin") -> tuple[str, ...]:
    """Names of the probes that must succeed where the ranks of this scenario's job run; ``sdk`` is the chosen one."""
    kind = job_kind(scenario.job.kind)
    needs = kind.needs_for(scenario)
    # Only a rehearsal brings a stand-in along: a genuine job without the package has no mechanism, and says so late.
    vendors = sdk == "vendor" or (kind.traits.genuine and "mindspore" in needs)
    return (*needs, *(("mindio_ttp",) if vendors and _needs_mindio(scenario) else ()))


def unknown_releases(scenario: Scenario, versions: Mapping[str, str], sdk: str = "standin") -> list[str]:
    """Packages that the ranks use on other machines, and of which ``versions``, of this one, do not tell a release."""
    met = _met_by_platform(scenario)
    return sorted({one for one in needs_of_job(scenario, sdk) if one in MODULES and one in met} - versions.keys())


def _needs_mindio(scenario: Scenario) -> bool:
    return bool(set(switched_on(scenario.job.protection)) & NEEDS["MindIO"].keys())


def needs_of_scenario(scenario: Scenario) -> tuple[str, ...]:
    """Names of the probes (:data:`chaos.doctor.PROBES`) that must succeed before this scenario can run."""
    device = ("npu",) if scenario.job.device == "Ascend" else ()
    needs = (
        *needs_of_job(scenario),
        *_needs_of_platform(scenario),
        *needs_of(*kinds_of(scenario).values()),
        *device,
    )
    needs = tuple(need for need in needs if need not in _met_by_platform(scenario))
    if "mindspore" not in needs or not _needs_mindio(scenario):
        return needs
    # Without the cluster's agent MindSpore itself answers the SDK's controller about lost ranks.
    asks = (OWN_AGENT,) if not scenario.job.agent and not REPLACING.isdisjoint(scenario.job.protection) else ()
    return tuple(dict.fromkeys((*needs, INTERFACE, *asks)))
