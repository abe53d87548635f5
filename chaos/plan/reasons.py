"""The reasons for the plan's expectations: a sentence for each, and the line that it follows from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.base.growth import FEW
from chaos.plan.budgets import growth
from chaos.plan.describe import count, layout_reason, ranks, sentence
from chaos.plan.draft import Draft
from chaos.plan.family_rules import reasons_of_fault, reasons_of_job
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.response import PHASES, Budget
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import IMPLIES, NEEDS, need_message, switched_on
from chaos.plan.recovery.outcome import Outcome
from chaos.plan.recovery.vendor import MINDSPORE
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import ExpectCheckpoint, ExpectResume, Scenario

CONTROLLER_LIMIT = 100_000
"""Ranks that the MindIO TFT controller accepts (``tft_init_controller``)."""


def reasons(
    draft: Draft,
    outcome: Outcome,
    checkpoint: PlannedCheckpoint | None,
    resume_step: int | None,
    resumes: bool,
) -> tuple[str, ...]:
    """Return the sentences in the order of the plan.

    The order is layout, switches, targets, mechanism, repairs, step, savers, resume.
    """
    sentences = _reasons(draft, outcome, checkpoint, resume_step, resumes)
    return tuple(sentence(text) for text in sentences)


def _reasons(
    draft: Draft,
    outcome: Outcome,
    checkpoint: PlannedCheckpoint | None,
    resume_step: int | None,
    resumes: bool,
) -> Iterator[str]:
    scenario, layout = draft.scenario, draft.layout
    yield layout_reason(layout)
    if (every := scenario.job.steps_per_update or 1) > 1:
        yield f"the optimizer makes an update once in {every} steps; the SDK counts no others"
    protection = scenario.job.protection
    on = switched_on(protection)
    for mechanism in protection:
        if mechanism in IMPLIES and IMPLIES[mechanism] not in protection:
            yield f"{mechanism} switches {IMPLIES[mechanism]} on"
    yield from filter(None, (need_message(mechanism, "MindIO", draft.traits.vendor or MINDSPORE) for mechanism in on))
    if layout.ranks > CONTROLLER_LIMIT and any(mechanism in NEEDS["MindIO"] for mechanism in on):
        yield f"the MindIO TFT controller accepts at most {CONTROLLER_LIMIT:,} ranks, this layout has {layout.ranks:,}"
    if (times := growth(scenario.job.timings, layout.ranks)) > 1 and outcome.mechanism in PHASES:
        yield (
            f"with timings {scenario.job.timings} {count(layout.ranks, 'rank')} share the cores of a machine, so every "
            f"budget that the scenario does not write is {times:g} times that of up to {FEW}"
        )
    yield from reasons_of_job(draft)
    for fault in draft.faults:
        yield from reasons_of_fault(fault)
        if fault.fault.seed is not None:
            yield f"fault {fault.fault.id}: {ranks(fault.fault.ranks)} drawn with seed {fault.fault.seed}"
    stop = outcome.stop
    yield from (reason for reason in outcome.reasons if checkpoint is None or reason != stop)
    if checkpoint is None:
        return
    yield _step_reason(outcome, checkpoint)
    if isinstance(scenario.expect.checkpoint, ExpectCheckpoint) and scenario.expect.checkpoint.ranks is not None:
        yield "the scenario names the rank of every replica group that saves"
    elif draft.traits.gathers_by is not None:
        yield (
            f"{count(len(checkpoint.savers), 'rank')} must save, one for each slice of the weights: it gathers the "
            "optimizer's state from ranks that together have a copy"
        )
    else:
        yield (
            f"{count(len(checkpoint.savers), 'replica group')} must save; in each the lowest surviving rank is "
            "expected, and any other survivor of the group may save in its place"
        )
    if resumes and resume_step is not None:
        yield f"the checkpoint holds step {resume_step - 1}, so the training goes on at step {resume_step}"
    elif resumes:
        yield "the training goes on at the step after the one that the checkpoint holds"
    else:
        yield "job.resume is false, so the job is not started again"


def _step_reason(outcome: Outcome, checkpoint: PlannedCheckpoint) -> str:
    assert outcome.loss is not None
    if outcome.loss.step is None and checkpoint.step is not None:
        return f"the trigger leaves the step open; the scenario expects step {checkpoint.step}"
    return outcome.stop


def expectation_lines(
    scenario: Scenario,
    faults: Sequence[Scheduled],
    outcome: Outcome,
    checkpoint: PlannedCheckpoint | None,
    budget: Budget,
    resumes: bool,
    problems: Problems,
) -> dict[str, int]:
    """Return the line of every expectation: the line that wrote it, or the line of the key that it follows from."""
    expect, cause = scenario.expect, outcome.cause
    follows = f"{cause}.trigger" if outcome.loss is not None or outcome.recoveries else cause
    restarted = "job.resume_arguments" if resumes and scenario.job.resume_arguments else follows
    paths = {
        "replica_groups": "cluster.parallel",
        "last_step": "job.steps",
        **({} if scenario.job.steps_per_update is None else {"steps_per_update": "job.steps_per_update"}),
        "protection": "job.protection",
        "baseline": "baseline",
        "loss": "expect.loss" if expect.loss is not None else "baseline",
        "mechanism": "expect.mechanism" if expect.mechanism is not None else cause,
        "checkpoint": "expect.checkpoint" if expect.checkpoint is not None else follows,
        "resume": "expect.resume" if expect.resume is not None else ("job.resume" if checkpoint else restarted),
    }
    paths.update({f"faults.{fault.fault.id}": fault.path for fault in faults})
    if outcome.recoveries:
        paths["recoveries"] = follows
    if checkpoint is not None:
        paths.update(_checkpoint_paths(scenario, follows))
    if resumes:
        paths["resume.step"] = _resume_path(scenario, paths)
    paths.update(_recovery_paths(scenario, budget))
    lines = {name: problems.line(path) for name, path in paths.items()}
    return {name: line for name, line in lines.items() if line is not None}


def _checkpoint_paths(scenario: Scenario, follows: str) -> dict[str, str]:
    written = scenario.expect.checkpoint
    step = ranks = follows
    if isinstance(scenario.expect.resume, ExpectResume):
        step = "expect.resume.step"
    if isinstance(written, ExpectCheckpoint):
        step = "expect.checkpoint.step" if written.step is not None else step
        ranks = "expect.checkpoint.ranks" if written.ranks is not None else ranks
    return {"checkpoint.step": step, "checkpoint.ranks": ranks, "checkpoint.files": step}


def _resume_path(scenario: Scenario, paths: dict[str, str]) -> str:
    if isinstance(scenario.expect.resume, ExpectResume):
        return "expect.resume.step"
    return paths.get("checkpoint.step", paths["resume"])


def _recovery_paths(scenario: Scenario, budget: Budget) -> dict[str, str]:
    written = scenario.expect.recovery
    phases = written.phases if written is not None else {}
    total = written.total if written is not None else None
    paths = {
        f"recovery.{name}": f"expect.recovery.phases.{name}" if name in phases else "job.timings"
        for name in budget.phases
    }
    if budget.total is not None:
        paths["recovery.total"] = "expect.recovery.total" if total is not None else "job.timings"
    if budget.rollback is not None:
        paths["recovery.rollback"] = "expect.recovery.rollback"
    return paths
