"""A plan as text for people. Long lists are shortened, so the text stays short at any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.plan.describe import SHOWN, count, group, ranks
from chaos.plan.model import Plan
from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.known_finding import KnownFinding
from chaos.plan.parts.recovery_options import RecoveryOptions
from chaos.plan.parts.response import ENDING, Recovery
from chaos.scenario.errors import printable

_WIDTH = 12

_SHARDED = {"optimizer": "of the optimizer's state", "full": "of weights and optimizer state"}


def render(plan: Plan) -> str:
    """Return the plan as lines of text, each ending with a line break. Control characters are escaped."""
    return "".join(f"{printable(line)}\n" for line in _lines(plan))


def _known(known: KnownFinding) -> str:
    with_sdk = {None: "", "vendor": "with the vendor's SDK ", "standin": "with the stand-in for the SDK "}
    may = "is to" if known.finding_always else "may, now and then,"
    also = ", ".join(known.failing_with_vendor)
    more = f", with the vendor's SDK in {also} too" if also else ""
    return f"{with_sdk.get(known.finding_sdk, '')}the run {may} fail in {', '.join(known.failing)}{more}"


def _lines(plan: Plan) -> Iterator[str]:
    identity, known = plan.identity, plan.known_finding
    cell = f" [{identity.cell}]" if identity.cell else ""
    yield _row("scenario", f"{identity.scenario}{cell} ({identity.source})")
    if known.finding is not None:
        yield _row("finding", f"{known.finding}: known defect of the system under test, {_known(known)}")
    yield _row("cluster", f"{count(plan.layout.ranks, 'rank')} on {count(plan.layout.nodes, 'node')}")
    yield _row("job", _job(plan))
    yield _row("protection", ", ".join(plan.fault_tolerance.protection) or "none")
    if plan.fault_tolerance.strategies:
        yield _row("strategies", f"{', '.join(plan.fault_tolerance.strategies)} (cluster agent)")
    if options := _options(plan.fault_tolerance.recovery_options):
        yield _row("options", ", ".join(options))
    yield _row("replicas", _groups(plan.layout.replica_groups))
    if plan.layout.shard != "none":
        yield _row("shards", _SHARDED[plan.layout.shard])
    yield _row("faults", count(len(plan.faults), "fault") if plan.faults else "none")
    for fault in plan.faults:
        yield f"  {_fault(fault)}"
    yield _row("mechanism", _mark(plan, "mechanism", plan.response.mechanism or "none has to act"))
    if plan.response.goes_on or len(plan.response.recoveries) > 1:
        yield _row("recoveries", _mark(plan, "recoveries", "; then ".join(map(_recovery, plan.response.recoveries))))
    yield from _checkpoint(plan)
    yield _row("resume", _mark(plan, "resume", _resume(plan)))
    yield from _budget(plan)
    yield _row("baseline", plan.equivalence.baseline)
    yield _row("loss", _loss(plan))
    if plan.explanation.configured:
        yield "from the job's own files"
        width = max(map(len, plan.explanation.configured))
        yield from (f"  {name:<{width}}  {text}" for name, text in plan.explanation.configured.items())
    if plan.comparison is not None:
        shares = ", ".join(f"{name} at most {share:g}" for name, share in plan.comparison.at_most.items())
        yield _row("compare", f"over {plan.comparison.axis}, second value against first: {shares}")
    yield "why"
    for reason in plan.explanation.reasons:
        yield f"  - {reason}"


def _loss(plan: Plan) -> str:
    tolerance, comparable = plan.equivalence.loss_tolerance, plan.equivalence.comparable
    rule = "equal bit for bit" if tolerance == 0 else f"within {tolerance:g}"
    if plan.equivalence.false_alarm is not None:
        rule += f" (a sound run exceeds a limit in {plan.equivalence.false_alarm:.2%} of runs, as calibrated)"
    if plan.layout.loss_ranks is not None:
        first, last = plan.layout.loss_ranks
        rule += f" on {ranks(range(first, last + 1))}, where it is valid (pipeline stages)"
    if not plan.training.gradients:
        rule += ", without the gradients, which are not recorded in this kind of job"
    if comparable is None:
        return rule
    return f"{rule} up to step {max(0, comparable.losses_until)}; after that not compared: {comparable.why}"


def _row(name: str, text: str) -> str:
    return f"{name:<{_WIDTH}}{text}"


def _mark(plan: Plan, expectation: str, text: str) -> str:
    """Return the text with its line of the scenario."""
    line = plan.explanation.lines.get(expectation)
    return text if line is None else f"{text}  (line {line})"


def _job(plan: Plan) -> str:
    training = plan.training
    steps, epoch, interval = training.last_step, training.steps_per_epoch, training.checkpoint_interval
    epochs = "" if epoch >= steps else f", {epoch} in an epoch"
    every = training.steps_per_update or 1
    updates = "" if every == 1 else f", an update of the optimizer every {every} steps"
    saves = "" if interval is None else f", a checkpoint every {count(interval, 'step')}"
    timings = plan.response.timings
    return f"{count(steps, 'step')}{epochs}{updates}{saves}, seed {training.seed}, timings {timings}"


def _options(options: RecoveryOptions) -> list[str]:
    """Return the job's recovery options in words; collectives with the times to which they are scaled."""
    options_text = []
    if options.watchdog is not None:
        options_text.append(
            f"collectives give up after {options.exec_timeout:g} s (scaled by {options.time_scale:g}), "
            + (f"watchdog every {options.poll:g} s" if options.watchdog else "no watchdog")
        )
    names = {
        "periodic checkpoints in the background": options.asynchronous_saving,
        "latest checkpoint in memory": options.memory,
        "compiled": options.graph,
        "compile cache": options.compile_cache,
    }
    return [*options_text, *(name for name, on in names.items() if on)]


def _groups(groups: tuple[tuple[int, ...], ...]) -> str:
    size = len(groups[0]) if groups else 0
    shown = groups if len(groups) <= SHOWN + 2 else (*groups[:SHOWN], groups[-1])
    texts = [group(members) for members in shown]
    listed = " ".join(texts) if len(shown) == len(groups) else f"{' '.join(texts[:-1])} … {texts[-1]}"
    return f"{count(len(groups), 'group')} of {count(size, 'rank')}: {listed}"


def _fault(fault: PlannedFault) -> str:
    seed = "" if fault.seed is None else f", drawn with seed {fault.seed}"
    line = "" if fault.line is None else f"  (line {fault.line})"
    where = ranks(fault.ranks) if fault.role is None else f"the {fault.role}"
    return f"{fault.id}: {fault.kind} on {where}{seed}, {trigger_text(fault.trigger)}{line}"


def trigger_text(trigger: Mapping[str, Any]) -> str:
    """Return a planned fault's trigger in words."""
    parts = []
    if "step" in trigger:
        parts.append(f"at {trigger.get('phase', 'step.begin')} of step {trigger['step']}")
    if "handler" in trigger:
        parts.append(f"when the SDK calls handler {trigger['handler']}")
    if "elapsed" in trigger:
        parts.append(f"{trigger['elapsed']:g} s after the first step has begun")
    if "log" in trigger:
        rank = trigger["log"].get("rank")
        source = "a process" if rank is None else f"rank {rank}"
        parts.append(f"when {source} logs {trigger['log']['contains']!r}")
    if "after" in trigger:
        parts.append(f"after {trigger['after']}")
    if "healed" in trigger:
        parts.append(f"when {trigger['healed']} has ended")
    if "all" in trigger:
        parts.append(" and ".join(f"({trigger_text(part)})" for part in trigger["all"]))
    if "any" in trigger:
        parts.append(" or ".join(f"({trigger_text(part)})" for part in trigger["any"]))
    return " and ".join(parts)


def _recovery(recovery: Recovery) -> str:
    """Return the duties of one mechanism, in words."""
    if not recovery.succeeds:
        return f"{recovery.mechanism} is tried and fails"
    step = "the last trained step" if recovery.step is None else f"step {recovery.step}"
    if recovery.mechanism in ENDING:
        return f"{recovery.mechanism} saves {step}"
    parts = [f"{recovery.mechanism}: all ranks go on after {step}"]
    if recovery.restarted:
        parts.append(f"new processes for {ranks(recovery.restarted)}")
    if recovery.copied:
        parts.append(f"state of {ranks(recovery.copied)} from a replica")
    if recovery.reads_checkpoint:
        parts.append("state from the periodic checkpoint")
    return ", ".join(parts)


def _checkpoint(plan: Plan) -> Iterator[str]:
    checkpoint = plan.checkpoint
    if checkpoint is None:
        yield _row("checkpoint", _mark(plan, "checkpoint", "none at the end of life"))
        return
    step = "the last trained step" if checkpoint.step is None else f"step {checkpoint.step}"
    yield _row("checkpoint", _mark(plan, "checkpoint.step", f"{step}, saved by {ranks(checkpoint.savers)}"))
    for line in _files(checkpoint):
        yield f"  {line}"


def _files(checkpoint: PlannedCheckpoint) -> list[str]:
    names = [checkpoint.files[rank] for rank in checkpoint.savers] if checkpoint.files else []
    if len(names) <= SHOWN + 2:
        return names
    return [*names[:SHOWN], f"… {count(len(names) - SHOWN - 1, 'file')} more", names[-1]]


def _resume(plan: Plan) -> str:
    if not plan.resume.resumes:
        return "none"
    source = "" if plan.resume.restore is None else ", from periodic checkpoints"
    return (
        "at the step after the checkpoint"
        if plan.resume.resume_step is None
        else f"at step {plan.resume.resume_step}{source}"
    )


def _budget(plan: Plan) -> Iterator[str]:
    budget = plan.response.budget
    if budget.total is not None or budget.phases:
        total = "no total" if budget.total is None else f"{budget.total:g} s"
        phases = [f"{name} {seconds:g}" for name, seconds in budget.phases.items()]
        text = "; ".join(filter(None, [f"{total} in all", ", ".join(phases)]))
        yield _row("budget", _mark(plan, "recovery.total", text))
    if budget.rollback is not None:
        steps = count(budget.rollback, "step")
        yield _row("trained again", _mark(plan, "recovery.rollback", f"{steps} at most"))
