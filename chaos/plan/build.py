"""Builds the plan of one matrix cell. Nothing is started, and nothing outside the scenario is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from chaos.plan.budgets import plan_budget
from chaos.plan.checkpoints.end_of_life import plan_checkpoint
from chaos.plan.checkpoints.restore import plan_restore, writes_group_info
from chaos.plan.comparable import Resumed, plan_comparable
from chaos.plan.describe import sentence
from chaos.plan.draft import Draft
from chaos.plan.expectations import Expected, merge
from chaos.plan.family_rules import check_families, longest_wait, reasons_of_families
from chaos.plan.model import Plan
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.comparison import plan_comparison
from chaos.plan.parts.equivalence import plan_equivalence
from chaos.plan.parts.explanation import Explanation, configured_of
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.fault_tolerance import plan_fault_tolerance
from chaos.plan.parts.identity import Identity
from chaos.plan.parts.known_finding import plan_known_finding
from chaos.plan.parts.layout import plan_layout
from chaos.plan.parts.response import Budget, Response
from chaos.plan.parts.resume import Resume
from chaos.plan.parts.training import Training, plan_training
from chaos.plan.planned_kind import Kinds, effects_of, hazards_of, lasting_of, parameters_of, required_places
from chaos.plan.platform_traits import SEVERAL_HOSTS, PlatformTraits
from chaos.plan.problems import Problems
from chaos.plan.reasons import expectation_lines, reasons
from chaos.plan.recovery.mechanism import SAVING, switched_on
from chaos.plan.recovery.outcome import Outcome, check_reachable, derive
from chaos.plan.recovery.registry import in_order, mechanisms
from chaos.plan.recovery.vendor import MINDSPORE
from chaos.plan.rules.accumulation import check_accumulation
from chaos.plan.rules.constraints import layout_violations
from chaos.plan.rules.device import device_violations
from chaos.plan.rules.hazard import check_allowed, hazard_reasons
from chaos.plan.rules.healed import check_healed
from chaos.plan.rules.job_limits import job_violations
from chaos.plan.rules.parameters import check_parameters
from chaos.plan.rules.required_place import check_required_places
from chaos.plan.rules.sinking import check_sinking
from chaos.plan.rules.supervised import check_supervised, supervised_reason
from chaos.plan.rules.unused_resume import check_resume_arguments, unused_arguments
from chaos.plan.schedule import plan_faults
from chaos.plan.source import Source
from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import Layout, layout_of, replica_groups
from chaos.plan.topology.survive import survive
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario


def build_plan(
    scenario: Scenario,
    source: Source,
    *,
    traits: JobTraits,
    kinds: Kinds,
    draw_seed: Callable[[], int],
    platform: PlatformTraits = SEVERAL_HOSTS,
) -> Plan:
    """Work out what should happen.

    Args:
        scenario: the scenario, variables and matrix cell filled in.
        source: where the scenario is written, and the statements of the job's own files.
        traits: what this kind of job can observe and how it saves.
        kinds: every known fault kind; a kind missing here is unknown.
        draw_seed: gives a fresh seed; called for each random target that has none.
        platform: the traits of its platform.

    Raises:
        ScenarioError: with every problem found: a layout that does not add up, a target or trigger that the job does
            not have, a constraint of the vendor, an expectation that the plan shows to be impossible.

    Time and memory are linear in the number of ranks.
    """
    problems = Problems(source.file, source.lines, source.origins, source.known_problems)
    layout = replace(_layout(scenario, problems), replica_stride=traits.replica_stride)
    groups = replica_groups(layout)
    faults = plan_faults(
        scenario,
        layout,
        groups,
        effects=effects_of(kinds),
        traits=traits,
        draw_seed=draw_seed,
        problems=problems,
    )
    draft = Draft(scenario, layout, groups, faults, kinds, traits, platform)
    _check(draft, problems)
    outcome = derive(scenario, groups, faults, problems, traits.vendor or MINDSPORE)
    problems.raise_found()
    entitled = survive(groups, outcome.dead).entitled
    restore, restored = plan_restore(draft, outcome, problems)
    expected = merge(scenario, outcome, entitled, restore, problems)
    if expected.resumes or restore is not None:
        problems.add_found(traits.unplanned)
    unused = unused_arguments(draft, outcome, expected, restore, restored, problems)
    supervised = supervised_reason(scenario, expected, restored or outcome.why, problems)
    outcome = replace(outcome, reasons=(*outcome.reasons, *filter(None, (restored, unused, supervised))))
    after = None if expected.resume_step is None else expected.resume_step - 1
    judged = plan_comparable(draft, outcome.recoveries, Resumed(expected.resumes, after), problems)
    outcome = replace(outcome, recoveries=judged.recoveries)
    budget = _budget(draft, outcome, expected, problems)
    problems.raise_found()

    training = plan_training(scenario, traits)
    checkpoint = _checkpoint(outcome, expected, entitled, draft, training)
    sentences = (
        *reasons(draft, outcome, checkpoint, expected.resume_step, expected.resumes),
        *_reasons_of_faults(draft, judged.faults),
    )
    lines = expectation_lines(scenario, faults, outcome, checkpoint, budget, expected.resumes, problems)
    return Plan(
        identity=Identity(scenario.name, source.file, source.cell),
        layout=plan_layout(layout, groups, traits, group_info=writes_group_info(scenario, groups, traits)),
        training=training,
        fault_tolerance=plan_fault_tolerance(scenario, traits.vendor or MINDSPORE),
        faults=judged.faults,
        response=_response(scenario, outcome, budget),
        checkpoint=checkpoint,
        resume=Resume(expected.resumes, expected.resume_step, restore),
        equivalence=plan_equivalence(scenario, judged.comparable),
        known_finding=plan_known_finding(scenario),
        explanation=Explanation(sentences, lines, configured_of(source)),
        comparison=plan_comparison(scenario),
    )


def _response(scenario: Scenario, outcome: Outcome, budget: Budget) -> Response:
    cause = scenario.expect.root_cause
    return Response(outcome.mechanism, budget, scenario.job.timings, outcome.recoveries, cause)


def _check(draft: Draft, problems: Problems) -> None:
    """Refuse what the vendor, the job, the platform and the fault kinds do not allow."""
    scenario, layout, faults = draft.scenario, draft.layout, draft.faults
    kinds, traits, platform = draft.kinds, draft.traits, draft.platform
    violations = (
        *layout_violations(scenario, layout, switched_on(scenario.job.protection), traits.vendor or MINDSPORE),
        *job_violations(scenario, layout, traits),
        *device_violations(scenario, traits, platform),
    )
    for violation in violations:
        problems.add(violation.path, violation.message, text=violation.text, hint=violation.hint)
    check_allowed(scenario, faults, hazards_of(kinds), platform, problems)
    check_parameters(faults, parameters_of(kinds), problems)
    check_required_places(faults, required_places(kinds), problems)
    check_healed(scenario, lasting_of(kinds), problems)
    check_families(draft, problems)
    if traits.rules is not None:
        traits.rules(draft, problems)
    for mechanism in in_order():
        if mechanism.check is not None:
            mechanism.check(scenario, faults, traits, problems)
    check_reachable(faults, problems)
    check_sinking(scenario, problems)
    check_resume_arguments(scenario, problems)
    check_supervised(scenario, problems)
    check_accumulation(scenario, faults, problems)
    # The rest is derived from the parts above; broken parts would only add misleading problems.
    problems.raise_found()


def _budget(draft: Draft, outcome: Outcome, expected: Expected, problems: Problems) -> Budget:
    if outcome.ends_within is not None:
        return Budget(outcome.ends_within, {})
    return plan_budget(
        outcome.mechanism,
        expected.resumes,
        draft.scenario,
        problems,
        silent=any(fault.effect.noticed_by_silence for fault in draft.faults),
        lost=len(outcome.dead),
        tried=[recovery.mechanism for recovery in outcome.recoveries if not recovery.succeeds],
        ecc=any(draft.kinds[fault.kind].effect.tells_time for fault in draft.scenario.faults),
        waits=longest_wait(draft),
        longer=_longer(draft, outcome),
    )


def _longer(draft: Draft, outcome: Outcome) -> Mapping[str, float]:
    """Return by how many seconds the faults of the last recovery make its phases longer."""
    last = outcome.recoveries[-1] if outcome.recoveries else None
    mechanism = None if last is None or outcome.mechanism != last.mechanism else mechanisms()[last.mechanism]
    if last is None or mechanism is None or mechanism.longer is None:
        return {}
    return mechanism.longer(draft.scenario, [fault for fault in draft.faults if fault.fault.id in last.faults])


def _checkpoint(
    outcome: Outcome,
    expected: Expected,
    entitled: Sequence[tuple[int, ...]],
    draft: Draft,
    training: Training,
) -> PlannedCheckpoint | None:
    """Return the end-of-life checkpoint, None where the mechanism saves none."""
    if outcome.mechanism not in SAVING:
        return None
    every = training.steps_per_update or 1
    return plan_checkpoint(
        expected.step, entitled, draft.traits, training.steps_per_epoch, expected.only, every, draft.layout
    )


def _reasons_of_faults(draft: Draft, planned: Sequence[PlannedFault]) -> Iterator[str]:
    """Yield the plan's sentences about single faults."""
    yield from map(sentence, reasons_of_families(draft, planned))
    yield from hazard_reasons(draft.faults, hazards_of(draft.kinds))


def _layout(scenario: Scenario, problems: Problems) -> Layout:
    try:
        return layout_of(scenario.cluster)
    except TopologyError as error:
        problems.add_topology("cluster", error)
        raise problems.error() from error
