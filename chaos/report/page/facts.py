"""The plan and the environment of a run as facts for its page."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.base.rank_sets import rank_set
from chaos.evidence.facts import ranks_text, text_list
from chaos.evidence.statement_data import REPLICA, SAVED, STATE, StatementData
from chaos.evidence.text import readable
from chaos.plan.model import Plan
from chaos.report.element import element_of
from chaos.report.page.model import Environment, PlanFacts
from chaos.report.page.planned_faults import planned_text
from chaos.report.page.rerun import rerun_command
from chaos.report.result import Result

_MOST_NAMES = 8
_VALUES = {
    STATE: "digest of the state",
    SAVED: "digest of the saved state",
    REPLICA: "digest of the replicas' state",
}
"""Names of the values of a quantity, where they are not the quantity itself."""


def statement_facts(data: StatementData) -> Iterator[tuple[str, str]]:
    """Yield the subjects of a statement and its values, by name, as far as they are known."""
    if data.ranks:
        yield "ranks", rank_set(data.ranks).removeprefix("ranks ").removeprefix("rank ")
    if data.nodes:
        yield "nodes", ", ".join(map(str, data.nodes))
    for name, known in (("step", data.step), ("phase", data.phase), ("fault", data.fault), ("file", data.file)):
        if known is not None:
            yield name, readable(str(known))
    if data.parameters:
        of = "" if data.compared is None else f" ({len(data.parameters)} of {data.compared} differ)"
        yield "parameters", readable(text_list(data.parameters, _MOST_NAMES)) + of
    unit = "" if data.unit is None else f" {data.unit}"
    first = f" of {data.parameters[0]}" if len(data.parameters) > 1 else ""
    for name, value in (("expected", data.expected), ("seen", data.seen)):
        if value is not None:
            quantity = data.quantity or "value"
            yield f"{_VALUES.get(quantity, quantity)} {name}", readable(f"{value}{unit}{first}")
    if (element := element_of(data)) is not None:
        yield "first element that differs", readable(element)


def plan_facts(plan: Plan) -> PlanFacts:
    """Return the plan's expectations, its reasons with the vendor's source, and its faults."""
    return PlanFacts(
        tuple(_expectations(plan)),
        plan.explanation.reasons,
        tuple((fault.id, planned_text(fault), fault.line) for fault in plan.faults),
    )


def _expectations(plan: Plan) -> Iterator[tuple[str, str]]:
    layout, training = plan.layout, plan.training
    yield "ranks", f"{layout.ranks} on {layout.nodes} node{'s' * (layout.nodes != 1)}"
    sizes = sorted({len(group) for group in layout.replica_groups})
    yield "replica groups", f"{len(layout.replica_groups)} of {' or '.join(map(str, sizes))} ranks"
    yield "protection", ", ".join(plan.fault_tolerance.protection) or "none"
    yield "mechanism that must act", plan.response.mechanism or "none"
    for recovery in plan.response.recoveries:
        outcome = "succeeds" if recovery.succeeds else "fails"
        after = "" if recovery.step is None else f"; training goes on after step {recovery.step}"
        restarted = f"; new processes for {ranks_text(recovery.restarted)}" if recovery.restarted else ""
        copied = f"; {ranks_text(recovery.copied)} copied from replicas" if recovery.copied else ""
        yield f"recovery by {recovery.mechanism}", f"{outcome}{after}{restarted}{copied}"
    if plan.checkpoint is not None:
        step = "open" if plan.checkpoint.step is None else str(plan.checkpoint.step)
        yield "end-of-life checkpoint", f"step {step}, saved by {ranks_text(plan.checkpoint.savers)}"
    if plan.resume.resumes:
        first = (
            "the step after the checkpoint" if plan.resume.resume_step is None else f"step {plan.resume.resume_step}"
        )
        yield "resume", f"the job is started again and goes on at {first}"
    yield "last step", str(training.last_step)


def environment(result: Result) -> Environment:
    """Return the versions, the machine, the stand-ins with their layer, and the command that runs the same again."""
    made = result.made
    facts = [(str(name), str(version)) for name, version in result.versions.items()]
    machine = made.machine or {}
    facts += [(name, str(machine[name])) for name in ("system", "processors", "load") if name in machine]
    if made.cores:
        facts.append(("core numbers of the job", ", ".join(map(str, made.cores))))
    if made.code:
        facts.append(("digest of the harness", made.code))
    facts.append(("seed", str(result.seed)))
    facts += [(f"variable {name}", str(value)) for name, value in (made.variables or {}).items()]
    simulated = tuple((str(part.get("part")), str(part.get("layer"))) for part in result.simulated)
    return Environment(tuple(facts), simulated, rerun_command(result))
