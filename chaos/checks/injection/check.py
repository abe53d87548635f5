"""Check ``injection``: the planned faults, and no others, were made: once, at the planned place and time.

A fault that cannot be proven makes everything after it meaningless, so its verdict is unknown and never a pass; the
only failure is a fault that was made twice.
"""

from __future__ import annotations

from chaos.checks.injection.contradictions import injected_again, other_act_doubts, repeated_acts
from chaos.checks.injection.fault_case import FaultCase, evidence_of, planned_signal, target_of
from chaos.checks.injection.hit_ranks import judge_landing
from chaos.checks.injection.proof_registry import NoProof, proof_of
from chaos.checks.injection.trigger_proof import trigger_doubts
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import background_doubts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import places, ranks_text
from chaos.evidence.finding import Finding
from chaos.evidence.injection.triggers import demands
from chaos.evidence.proof import Proof
from chaos.evidence.statement_data import about
from chaos.faults.device_errors.proof import raised_again
from chaos.faults.values.proof import altered_again
from chaos.faults.values.proof_spike import scaled_too_often
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

NAME = "injection"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge every planned fault, and that no other was made."""
    collector = Collector(NAME)
    for fault in plan.faults:
        _judge(FaultCase(plan, history, artifacts, fault, collector, *_proof_for(history, fault)))
    _judge_unplanned(plan, history, collector)
    return collector.findings()


def _proof_for(history: History, fault: PlannedFault) -> tuple[Proof | None, str]:
    """Return the proof of the fault's kind; None, and the reason, where there is none here."""
    try:
        return proof_of(fault.kind), ""
    except NoProof:
        armed = history.select("fault.armed", fault=fault.id)
        package = next((str(event.data["package"]) for event in armed if event.data.get("package")), "")
    try:
        return proof_of(fault.kind, package), ""
    except NoProof as error:
        return None, str(error)


def _judge(case: FaultCase) -> None:
    landings = case.of_fault("fault.landed")
    injections = case.of_fault("fault.injecting")
    for missed in case.of_fault("fault.missed"):
        case.unproven(f"the fault missed: {missed.data.get('reason')}", missed.source)
    for raised in case.of_fault("fault.raised"):
        if raised.rank not in case.fault.ranks:
            case.unproven(f"rank {raised.rank} raised it, which was not planned", raised.source)
    if len(landings) > 1 or injected_again(injections):
        observation = f"injected twice: {len(landings)} landings, {len(injections)} injections"
        case.collector.fail(case.planned, observation, case.line, *places(landings or injections), data=case.subject)
    repeated = {
        "scaled too often": scaled_too_often(case.history, case.fault),
        "raised more than once": raised_again(history=case.history, fault=case.fault),
        "altered more than once": altered_again(case.history, case.fault),
        "made more than once": repeated_acts(case.history, case.fault),
    }
    for what, events in repeated.items():
        if events:
            ranks = ranks_text(dict.fromkeys(event.rank for event in events if event.rank is not None))
            case.collector.fail(case.planned, f"{what} on {ranks}", case.line, *places(events), data=case.subject)
    if not landings:
        case.unproven("no landing of this fault in the history: the planned fault was not injected")
        case.collector.close()
        return
    landing = landings[0]
    if case.proof is None:
        case.unproven(case.no_proof, landing.source)
    judge_landing(case, landing, injections)
    signal = planned_signal(case.fault)
    for doubt, where in other_act_doubts(case.history, case.fault, landing, injections, signal):
        case.unproven(doubt, *where)
    for doubt, where in background_doubts(case.plan, case.history, case.fault):
        case.unproven(doubt, *where)
    for doubt, where in trigger_doubts(case.plan, case.history, case.artifacts, case.fault, landing, injections):
        case.unproven(doubt, *where)
    observation = f"landed on {target_of(case.fault)}, proven by {_proven_by(case, landing)}"
    case.collector.settle(case.planned, observation, case.line, landing.source, data=case.subject)


def _proven_by(case: FaultCase, landing: Event) -> str:
    """Return the evidence behind a proven fault, in words."""
    proof = "the kernel's exit status" if case.fault.role is not None or case.proof is None else case.proof.words
    evidence = evidence_of(landing)
    held = (
        demands(case.fault.trigger).barriers
        and evidence
        and all(isinstance(entry.get("barrier"), dict) for entry in evidence)
    )
    return f"{proof}{', barrier' if held else ''} and process identity"


def _judge_unplanned(plan: Plan, history: History, collector: Collector) -> None:
    ids = {fault.id for fault in plan.faults}
    made = [event for name in ("fault.injecting", "fault.landed") for event in history.select(name)]
    unplanned = [event for event in made if event.data.get("fault") not in ids]
    for event in unplanned:
        collector.unknown(
            "only planned faults are made",
            f"fault {event.data.get('fault')} was not planned",
            event.source,
            data=about(fault=event.data.get("fault")),
        )
    collector.settle("only planned faults are made", f"{len(plan.faults)} planned, no other made")
