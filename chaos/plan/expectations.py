"""Merges the scenario's expectations with the plan.

A written expectation may sharpen the plan. An expectation that the plan shows to be impossible is an error that names
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.plan.describe import group, ranks
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NAMING, SAVING
from chaos.plan.recovery.outcome import Outcome
from chaos.scenario.models.scenario import ExpectCheckpoint, ExpectResume, Scenario


@dataclass(frozen=True)
class Expected:
    """The expectations after the merge.

    ``step`` is the step that the checkpoint holds, None where it is open or where there is none. ``only`` lists the
    savers in group order when the scenario names them. ``resume_step`` is None where it is open or none follows.
    """

    step: int | None
    only: tuple[int, ...] | None
    resumes: bool
    resume_step: int | None


def merge(
    scenario: Scenario,
    outcome: Outcome,
    entitled: Sequence[tuple[int, ...]],
    restore: PlannedRestore | None,
    problems: Problems,
) -> Expected:
    """Merge the scenario's expectations with the outcome; conflicts are noted as problems.

    Args:
        scenario: the scenario.
        outcome: the outcome that the plan derived.
        entitled: surviving ranks of every replica group, in group order.
        restore: periodic checkpoints that the job can be started again from, where there are any.
        problems: collects every impossible expectation.
    """
    shown = f"the plan shows {{}} ({problems.where(outcome.cause)}): {outcome.why}"
    _merge_mechanism(scenario, outcome, shown, problems)
    _merge_loss(scenario, problems)
    _merge_root_cause(scenario, outcome, shown, problems)
    if restore is not None and restore.step is not None:
        return _merge_restore(scenario, restore.step, problems)
    if outcome.mechanism not in SAVING:
        _refuse_recovery(scenario, shown, any(recovery.damaged for recovery in outcome.recoveries), problems)
        return Expected(None, None, False, None)
    if scenario.expect.checkpoint == "none":
        message = "expect.checkpoint says none, but " + shown.format("an end-of-life checkpoint")
        problems.add("expect.checkpoint", message, text="none", hint="remove the line")
    step = _merge_step(scenario, outcome, problems)
    only = _merge_savers(scenario, entitled, problems)
    if not scenario.job.resume:
        if isinstance(scenario.expect.resume, ExpectResume):
            where = problems.where("job.resume")
            message = f"expect.resume names step {scenario.expect.resume.step}, but job.resume is false ({where})"
            problems.add("expect.resume", message, hint="write resume: none, or set job.resume: true")
        return Expected(step, only, False, None)
    step = _merge_resume(scenario, outcome, step, problems)
    return Expected(step, only, True, None if step is None else step + 1)


def _merge_restore(scenario: Scenario, step: int, problems: Problems) -> Expected:
    """Return the expectations of a job that is started again from periodic checkpoints of this step."""
    written = scenario.expect.resume
    path, shown = "expect.resume", f"the plan shows that the job resumes from the periodic checkpoints of step {step}"
    if isinstance(scenario.expect.checkpoint, ExpectCheckpoint):
        message = f"expect.checkpoint expects an end-of-life checkpoint, but {shown}"
        problems.add("expect.checkpoint", message, hint="write checkpoint: none")
    if written == "none":
        problems.add(path, f"{path} says none, but {shown}", text="none", hint=f"write resume: step {step + 1}")
    elif written is not None and written.step != step + 1:
        hint = f"write step {step + 1}"
        problems.add(f"{path}.step", f"{path}.step says {written.step}, but {shown}", text=written.step, hint=hint)
    return Expected(None, None, True, step + 1)


def _merge_mechanism(scenario: Scenario, outcome: Outcome, shown: str, problems: Problems) -> None:
    written = scenario.expect.mechanism
    if written is None or written == (outcome.mechanism or "none"):
        return
    derived = outcome.mechanism if outcome.mechanism not in (None, "none") else "that none acts"
    problems.add("expect.mechanism", f"expect.mechanism says {written}, but {shown.format(derived)}", text=written)


def _merge_loss(scenario: Scenario, problems: Problems) -> None:
    if scenario.expect.loss is not None and scenario.baseline == "none":
        message = f"expect.loss needs a baseline to compare with, but baseline is none ({problems.where('baseline')})"
        problems.add("expect.loss", message, hint="set baseline: auto, or remove expect.loss")


def _merge_root_cause(scenario: Scenario, outcome: Outcome, shown: str, problems: Problems) -> None:
    """Refuse the expectation where nothing names a root cause. A fault-free run has none."""
    if scenario.expect.root_cause is None or not scenario.faults:
        return
    if not any(recovery.mechanism in NAMING for recovery in outcome.recoveries):
        acts = f"no restart by {NAMING}, in which the launcher names a root cause"
        hint = "remove the line; what torchrun says of its last failure is in the run's logs"
        problems.add(
            "expect.root_cause", f"expect.root_cause says hit, but {shown.format(acts)}", text="hit", hint=hint
        )
    elif scenario.cluster.nodes > 1:
        message = (
            "expect.root_cause says hit, but each node has a torchrun of its own, which knows the failures of its own "
            f"ranks only ({problems.where('cluster.nodes')})"
        )
        problems.add("expect.root_cause", message, text="hit", hint="remove the line, or use nodes: 1")


def _refuse_recovery(scenario: Scenario, shown: str, damaged: bool, problems: Problems) -> None:
    """Note expectations of a checkpoint or a resume: nothing is saved, so there is nothing to load or go on from."""
    if isinstance(scenario.expect.checkpoint, ExpectCheckpoint):
        message = "expect.checkpoint expects an end-of-life checkpoint, but " + shown.format("none")
        problems.add("expect.checkpoint", message, hint="write checkpoint: none")
    # Before a restart within the launch that meets a damaged checkpoint, the key states the checkpoint before.
    if isinstance(scenario.expect.resume, ExpectResume) and not damaged:
        message = f"expect.resume names step {scenario.expect.resume.step}, but " + shown.format("no resume")
        problems.add("expect.resume", message, text=scenario.expect.resume.step, hint="write resume: none")


def _merge_step(scenario: Scenario, outcome: Outcome, problems: Problems) -> int | None:
    assert outcome.loss is not None
    derived = outcome.loss.step
    written = scenario.expect.checkpoint.step if isinstance(scenario.expect.checkpoint, ExpectCheckpoint) else None
    if written is None or written == derived:
        return derived
    return _sharpened(written, "expect.checkpoint.step", f"step {written}", written, outcome, derived, problems)


def _merge_resume(scenario: Scenario, outcome: Outcome, step: int | None, problems: Problems) -> int | None:
    """Return the step that the checkpoint holds; a written resume states it where nothing else does."""
    written = scenario.expect.resume
    if written == "none":
        message = f"expect.resume says none, but the job is started again ({problems.where('job.resume')})"
        problems.add("expect.resume", message, text="none", hint="set job.resume: false")
    if not isinstance(written, ExpectResume) or step == written.step - 1:
        return step
    path = "expect.resume.step"
    expectation = f"a resume at step {written.step}"
    if step is not None and outcome.loss is not None and outcome.loss.step is None:
        where = problems.where("expect.checkpoint.step")
        message = f"expect.resume says step {written.step}, but expect.checkpoint.step says {step} ({where})"
        problems.add(path, message, text=written.step, hint=f"the resume follows the checkpoint: step {step + 1}")
        return step
    return _sharpened(written.step - 1, path, expectation, written.step, outcome, step, problems)


def _sharpened(
    step: int, path: str, expectation: str, text: int, outcome: Outcome, derived: int | None, problems: Problems
) -> int | None:
    """Return a written step where the plan leaves it open, if it lies within what is possible."""
    loss = outcome.loss
    assert loss is not None
    if derived is None and max(1, loss.lowest) <= step <= loss.highest:
        return step
    why = f"{outcome.stop} ({problems.where(outcome.cause)})"
    offset = text - step
    right = (
        f"step {derived + offset}"
        if derived is not None
        else f"a step from {max(1, loss.lowest) + offset} to {loss.highest + offset}"
    )
    problems.add(
        path, f"{path} says {expectation}, but the plan shows {right}: {why}", text=text, hint=f"write {right}"
    )
    return derived


def _merge_savers(
    scenario: Scenario, entitled: Sequence[tuple[int, ...]], problems: Problems
) -> tuple[int, ...] | None:
    written = scenario.expect.checkpoint
    if not isinstance(written, ExpectCheckpoint) or written.ranks is None:
        return None
    path = "expect.checkpoint.ranks"
    by_rank = {rank: index for index, members in enumerate(entitled) for rank in members}
    chosen: dict[int, int] = {}
    for rank in sorted(written.ranks):
        index = by_rank.get(rank)
        if index is None:
            message = f"{path} names rank {rank}, but that rank is lost or does not exist, so it cannot save"
            problems.add(path, message, text=rank, hint="name a surviving rank of each replica group")
            return None
        if index in chosen:
            message = (
                f"{path} names ranks {chosen[index]} and {rank}, but both belong to one replica group (survivors "
                f"{group(entitled[index])}), of which one rank saves"
            )
            problems.add(path, message, text=rank, hint="name one rank of each replica group")
            return None
        chosen[index] = rank
    missing = [members for index, members in enumerate(entitled) if index not in chosen]
    if missing:
        message = (
            f"{path} names {ranks(sorted(written.ranks))}, but no rank of {group(missing[0])}, which must save too"
        )
        problems.add(path, message, text=list(written.ranks), hint="name one rank of each replica group")
        return None
    return tuple(chosen[index] for index in range(len(entitled)))
