"""Part of check ``injection``: the fault landed on the planned ranks and no others, proven for each of them."""

from __future__ import annotations

from typing import Any

from chaos.checks.injection.beside_ranks import beside_doubts
from chaos.checks.injection.fault_case import FaultCase, evidence_of, planned_signal
from chaos.checks.injection.held_ranks import judge_barrier
from chaos.checks.injection.hit_process import judge_identity
from chaos.checks.injection.proof_registry import effect_doubts, is_built_in
from chaos.evidence.facts import ranks_text, signal_name, signal_number
from chaos.evidence.injection import on_node
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case as ProofCase
from chaos.evidence.proof import lacking_evidence
from chaos.history.event import Event
from chaos.plan.parts.fault import PlannedFault

_TEXT_LIMIT = 500


def judge_landing(case: FaultCase, landing: Event, injections: list[Event]) -> None:
    """Judge the ranks, processes and evidence of the landing by the plan and by the injections."""
    if case.fault.role is not None:
        for doubt, where in beside_doubts(case.history, case.fault, landing, injections):
            case.unproven(doubt, *where)
        return
    planned = set(case.fault.ranks)
    evidence = evidence_of(landing)
    hit = {entry.get("rank") for entry in evidence}
    recorded = set(landing.data.get("ranks") or [])
    if recorded != planned:
        observation = f"it landed on {ranks_text(sorted(recorded))}: the planned fault was not injected"
        case.unproven(observation, landing.source)
    for rank in sorted(planned - hit):
        case.unproven(f"no evidence that rank {rank} was hit", landing.source)
    for extra in sorted(hit - planned, key=str):
        case.unproven(f"rank {extra} was hit, which was not planned", landing.source)
    for injection in injections:
        if injection.rank not in planned:
            case.unproven(f"rank {injection.rank} was hit, which was not planned", injection.source)
    for entry in evidence:
        if entry.get("rank") in planned:
            of_rank = [injection for injection in injections if injection.rank == entry["rank"]]
            _judge_rank(case, landing, entry, of_rank)
    for doubt, where in on_node.early_doubts(case.fault, landing, evidence, injections):
        case.unproven(doubt, *where)


def _judge_rank(case: FaultCase, landing: Event, evidence: dict[str, Any], injections: list[Event]) -> None:
    rank, pid = evidence["rank"], evidence.get("pid")
    assert isinstance(rank, int)
    if not injections:
        case.unproven(f"no record of the injection into rank {rank}", landing.source)
        return
    injection = injections[0]
    if injection.pid != pid:
        case.unproven(f"process {injection.pid} was hit, but the evidence is of process {pid}", injection.source)
    if (disorder := out_of_order(injection, landing)) is not None:
        case.unproven(f"the landing is recorded before the injection{disorder}", landing.source, injection.source)
    judge_identity(case, injection)
    signal = _expected_signal(case.fault, injection)
    shown_signal = signal_number(evidence.get("signal"))
    if signal is not None and shown_signal != signal:
        text = f"the evidence for rank {rank} shows {signal_name(shown_signal)}, not {signal_name(signal)}"
        case.unproven(text, landing.source)
    elif signal is None and shown_signal is not None and _sends_none(case):
        case.unproven(
            f"the evidence for rank {rank} shows {signal_name(shown_signal)}, but this fault sends no signal",
            landing.source,
        )
    _judge_proof(case, ProofCase(case.plan, case.history, case.artifacts, case.fault, landing, injection, evidence))
    end = required_end(case.fault)
    judge_barrier(case, landing, evidence, injection, dead=end is not None)


def _sends_none(case: FaultCase) -> bool:
    """Return whether a fault of this package's kind ends its rank without a signal, or is proven by none."""
    if required_end(case.fault) is not None:
        return True
    return is_built_in(case.fault.kind) and case.proof is not None and "signal" not in case.proof.fields


def _judge_proof(case: FaultCase, at_rank: ProofCase) -> None:
    """Judge a fault by its kind's own proof: a missing, failing or evidence-free proof proves nothing."""
    kind, source = case.fault.kind, at_rank.landing.source
    if case.proof is None:
        return  # said once for the fault
    rank = at_rank.injection.rank
    if (lacking := lacking_evidence(case.proof, at_rank.evidence)) is not None:
        case.unproven(f"the evidence for rank {rank} {lacking}", source)
        return
    try:
        doubts = list(case.proof.doubts(at_rank))
    except Exception as error:  # a proof of another package, or unforeseen evidence
        case.unproven(f"the proof of {kind} crashed: {type(error).__name__}: {error}"[:_TEXT_LIMIT], source)
        return
    if not is_built_in(kind):
        doubts.extend(effect_doubts(at_rank))
    for doubt, where in doubts:
        case.unproven(doubt, *where)


def _expected_signal(fault: PlannedFault, injection: Event) -> int | None:
    if required_end(fault) is None and planned_signal(fault) is None:
        return signal_number(injection.data.get("signal"))
    return planned_signal(fault)
