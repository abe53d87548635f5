"""Builds the plan of one matrix cell. Nothing is started and nothing outside the scenario is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chaos.plan.budgets import plan_budget
from chaos.plan.checkpoint import plan_checkpoint
from chaos.plan.comparable import Resumed, plan_comparable
from chaos.plan.corruption import check_corruption, corruption_reasons
from chaos.plan.describe import sentence
from chaos.plan.draft import Draft
from chaos.plan.errors import check_errors
from chaos.plan.expectations import merge
from chaos.plan.family_rules import check_families, reasons_of_families
from chaos.plan.hangs import check_hangs, check_slowness
from chaos.plan.memory import ECC
from chaos.plan.model import Plan, Watch
from chaos.plan.op_retry import check_op_retry
from chaos.plan.own_ends import check_own_ends
from chaos.plan.partitions import check_partitions, partition_reasons, waits_for_the_end
from chaos.plan.planned_kind import Kinds, asks_of, effects_of, hazards_of, lasting_of, parameters_of
from chaos.plan.platform_traits import SEVERAL_HOSTS, PlatformTraits
from chaos.plan.ports import check_ports
from chaos.plan.problems import Problems
from chaos.plan.reasons import expectation_lines, reasons
from chaos.plan.recovery.mechanism import SAVING, switched_on
from chaos.plan.recovery.outcome import check_reachable, derive
from chaos.plan.recovery.registry import in_order
from chaos.plan.recovery_options import plan_aids, plan_comparison
from chaos.plan.restore import plan_restore, writes_group_info
from chaos.plan.rules.accumulation import check_accumulation
from chaos.plan.rules.asks import check_asks
from chaos.plan.rules.constraints import layout_violations
from chaos.plan.rules.device import device_violations
from chaos.plan.rules.hazard import check_allowed, hazard_reasons
from chaos.plan.rules.healed import check_healed
from chaos.plan.rules.job_limits import job_violations
from chaos.plan.rules.parameters import check_parameters
from chaos.plan.rules.sinking import check_sinking
from chaos.plan.schedule import ABNORMAL, plan_faults
from chaos.plan.source import Source
from chaos.plan.spikes import spike_reasons
from chaos.plan.storage import check_storage
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
        source: where it stands, and what the job's own files say.
        traits: what this kind of job can observe and how it saves.
        kinds: every fault kind that is known; a kind that is missing is unknown.
        draw_seed: gives a fresh seed; called for each random target that has none.
        platform: what its platform is like.

    Raises:
        ScenarioError: with every problem found: a layout that does not add up, a target or trigger that the job does
            not have, a constraint of the vendor, an expectation that the plan shows to be impossible.

    Time and memory are linear in the number of ranks.
    """
    problems = Problems(source.file, source.lines, source.origins, source.found)
    layout = replace(_layout(scenario, problems), replica_stride=traits.replica_stride)
    groups = replica_groups(layout)
    faults = plan_faults(
        scenario,
        layout,
        groups,
        effects=effects_of(kinds),
        observable=traits.observable,
        draw_seed=draw_seed,
        problems=problems,
    )
    draft = Draft(scenario, layout, groups, faults, kinds, traits, platform)
    violations = (
        *layout_violations(scenario, layout, switched_on(scenario.job.protection)),
        *job_violations(scenario, layout, traits),
        *device_violations(scenario, traits, platform),
    )
    for violation in violations:
        problems.add(violation.path, violation.message, text=violation.text, hint=violation.hint)
    check_allowed(scenario, faults, hazards_of(kinds), platform, problems)
    check_parameters(faults, parameters_of(kinds), problems)
    check_asks(faults, asks_of(kinds), problems)
    check_healed(scenario, lasting_of(kinds), problems)
    check_families(draft, problems)
    check_ports(scenario, layout, faults, parameters_of(kinds), traits, problems)
    check_errors(scenario, faults, problems)
    check_corruption(scenario, faults, traits, problems)
    check_slowness(scenario, faults, problems)
    check_own_ends(scenario, faults, problems)
    check_hangs(scenario, faults, traits, problems)
    check_storage(scenario, faults, traits, problems)
    check_partitions(scenario, layout, faults, problems)
    check_op_retry(scenario, problems)
    for mechanism in in_order():
        if mechanism.check is not None:
            mechanism.check(scenario, faults, traits, problems)
    check_reachable(faults, problems)
    check_sinking(scenario, problems)
    check_accumulation(scenario, faults, problems)
    # What follows is derived from the parts above; on broken ones it would only add misleading problems.
    problems.raise_found()

    outcome = derive(scenario, groups, faults, problems)
    problems.raise_found()
    entitled = survive(groups, outcome.dead).entitled
    restore, restored = plan_restore(scenario, groups, faults, outcome, traits, platform, problems)
    if restored:
        outcome = replace(outcome, reasons=(*outcome.reasons, restored))
    expected = merge(scenario, outcome, entitled, restore, problems)
    if expected.resumes or restore is not None:
        problems.add_found(traits.unplanned)
    silent = any(fault.effect == "suspension" for fault in faults)
    tried = [one.mechanism for one in outcome.recoveries if not one.succeeds]
    after = None if expected.resume_step is None else expected.resume_step - 1
    judged = plan_comparable(scenario, groups, faults, outcome.recoveries, Resumed(expected.resumes, after), problems)
    outcome = replace(outcome, recoveries=judged.recoveries)
    lost = len(outcome.dead)
    ecc = any(fault.kind == ECC for fault in scenario.faults)
    budget = plan_budget(
        outcome.mechanism,
        expected.resumes,
        scenario,
        problems,
        silent=silent,
        lost=lost,
        tried=tried,
        ecc=ecc,
        waits=waits_for_the_end(scenario, faults),
    )
    problems.raise_found()

    steps_per_epoch = scenario.job.steps_per_epoch or scenario.job.steps
    checkpoint = None
    if outcome.mechanism in SAVING:
        every = scenario.job.steps_per_update or 1
        checkpoint = plan_checkpoint(expected.step, entitled, traits, steps_per_epoch, expected.only, every)
    loss = scenario.expect.loss
    spikes = [fault for fault in faults if fault.effect == ABNORMAL]
    return Plan(
        scenario=scenario.name,
        source=source.file,
        cell=source.cell,
        seed=scenario.job.seed,
        ranks=layout.ranks,
        nodes=layout.nodes,
        replica_groups=groups,
        faults=judged.faults,
        mechanism=outcome.mechanism,
        checkpoint=checkpoint,
        resumes=expected.resumes,
        resume_step=expected.resume_step,
        last_step=scenario.job.steps,
        steps_per_epoch=steps_per_epoch,
        checkpoint_interval=scenario.job.checkpoint_interval,
        protection=scenario.job.protection,
        loss_tolerance=0.0 if loss is None else loss.tolerance,
        baseline=scenario.baseline,
        budget=budget,
        timings=scenario.job.timings,
        finding=None if scenario.known is None else scenario.known.id,
        failing=scenario.failing,
        finding_sdk=None if scenario.known is None else scenario.known.sdk,
        failing_with_vendor=() if scenario.known is None else scenario.known.with_vendor,
        finding_always=scenario.known is None or scenario.known.always,
        recoveries=outcome.recoveries,
        strategies=scenario.job.strategies if scenario.job.agent else (),
        aids=plan_aids(scenario),
        comparison=plan_comparison(scenario),
        restore=restore,
        group_info=writes_group_info(scenario, groups, traits),
        gradients=traits.gradients,
        loss_ranks=_loss_ranks(layout, traits),
        comparable=judged.comparable,
        watch=None if scenario.job.tre is None else Watch(scenario.job.tre.threshold, scenario.job.tre.recorded),
        sink_size=scenario.job.sink_size,
        steps_per_update=scenario.job.steps_per_update or 1,
        configured={name: str(origin) for name, origin in {**source.origins, **source.facts}.items()},
        reasons=(
            *reasons(scenario, layout, faults, outcome, checkpoint, expected.resume_step, expected.resumes),
            *map(
                sentence,
                (
                    *partition_reasons(faults),
                    *spike_reasons(scenario, spikes),
                    *corruption_reasons(judged.faults),
                    *reasons_of_families(draft, judged.faults),
                ),
            ),
            *hazard_reasons(faults, hazards_of(kinds)),
        ),
        lines=expectation_lines(scenario, faults, outcome, checkpoint, budget, expected.resumes, problems),
    )


def _loss_ranks(layout: Layout, traits: JobTraits) -> tuple[int, int] | None:
    """The first and the last rank with a valid loss; None for all.

    Source: MindFormers, MFLossMonitor ("the loss on the last card is valid", with zero_bubble_v "only on rank 0").
    """
    if layout.stages == 1:
        return None
    valid = layout.stage_ranks(0 if traits.loss_on_rank_0 else layout.stages - 1)
    return (valid[0], valid[0] if traits.loss_on_rank_0 else valid[-1])


def _layout(scenario: Scenario, problems: Problems) -> Layout:
    try:
        return layout_of(scenario.cluster)
    except TopologyError as error:
        problems.add_topology("cluster", error)
        raise problems.error() from error
