"""Check ``injection``: the planned faults, and no others, were made: once, at the planned place and time.

A fault that cannot be proven makes everything after it meaningless, so its verdict is unknown and never a pass; the
only failure is a fault that was made twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.checks.injection.beside_ranks import beside_doubts
from chaos.checks.injection.contradictions import injected_again, other_act_doubts, repeated_acts
from chaos.checks.injection.proof_registry import NoProof, effect_doubts, is_built_in, proof_of
from chaos.checks.injection.trigger_proof import trigger_doubts
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import WRITTEN, background_doubts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import by_rank, places, ranks_text, signal_name, signal_number, step_of
from chaos.evidence.finding import Finding
from chaos.evidence.injection import on_node
from chaos.evidence.injection.deaths import ACTING, wanted_end
from chaos.evidence.injection.identity import identity_doubt
from chaos.evidence.injection.triggers import HANDLER, Barrier, barrier, demands, place_text
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case as ProofCase
from chaos.evidence.proof import Proof, lacking_evidence
from chaos.evidence.statement_data import StatementData, about
from chaos.faults.device_errors.proof import raised_again
from chaos.faults.values.proof import altered_again
from chaos.faults.values.proof_spike import scaled_too_often
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

NAME = "injection"
_TEXT_LIMIT = 500

_AFTER_STEP = ("step.end", "checkpoint.begin", "checkpoint.write", "checkpoint.end", "checkpoint.load")
"""Phases at which the step itself has ended."""


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge every planned fault, and that no other was made."""
    collector = Collector(NAME)
    for fault in plan.faults:
        _judge(_Case(plan, history, artifacts, fault, collector, *_proof_for(history, fault)))
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


@dataclass(frozen=True)
class _Case:
    plan: Plan
    history: History
    artifacts: Artifacts
    fault: PlannedFault
    collector: Collector
    proof: Proof | None
    no_proof: str

    @property
    def line(self) -> str:
        return f"scenario.yaml:{self.fault.line}" if self.fault.line else ""

    @property
    def planned(self) -> str:
        """The fault in words."""
        trigger_demands = demands(self.fault.trigger)
        when = " or ".join(map(place_text, trigger_demands.barriers)) or "its trigger"
        return f"fault {self.fault.id} ({self.fault.kind}) hits {_target(self.fault)} once, at {when}"

    @property
    def subject(self) -> StatementData:
        """The fault as data."""
        return about(self.fault.ranks, step=self.fault.trigger.get("step"), fault=self.fault.id)

    def unproven(self, observation: str, *where: str) -> None:
        """Say that the fault is not proven."""
        self.collector.unknown(self.planned, observation, self.line, *where, data=self.subject)

    def of_fault(self, event: str) -> list[Event]:
        return self.history.select(event, fault=self.fault.id)


def _target(fault: PlannedFault) -> str:
    return ranks_text(fault.ranks) if fault.role is None else f"the {fault.role}"


def _judge(case: _Case) -> None:
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
    if often := scaled_too_often(case.history, case.fault):
        ranks = ranks_text(dict.fromkeys(event.rank for event in often if event.rank is not None))
        case.collector.fail(case.planned, f"scaled too often on {ranks}", case.line, *places(often), data=case.subject)
    if again := raised_again(history=case.history, fault=case.fault):
        ranks = ranks_text(dict.fromkeys(event.rank for event in again if event.rank is not None))
        case.collector.fail(
            case.planned, f"raised more than once on {ranks}", case.line, *places(again), data=case.subject
        )
    if again := altered_again(case.history, case.fault):
        ranks = ranks_text(dict.fromkeys(event.rank for event in again if event.rank is not None))
        case.collector.fail(
            case.planned, f"altered more than once on {ranks}", case.line, *places(again), data=case.subject
        )
    if again := repeated_acts(case.history, case.fault):
        ranks = ranks_text(dict.fromkeys(event.rank for event in again if event.rank is not None))
        case.collector.fail(
            case.planned, f"made more than once on {ranks}", case.line, *places(again), data=case.subject
        )
    if not landings:
        case.unproven("no landing of this fault in the history: the planned fault was not injected")
        case.collector.close()
        return
    landing = landings[0]
    if case.proof is None:
        case.unproven(case.no_proof, landing.source)
    _judge_landing(case, landing, injections)
    signal = _planned_signal(case.fault)
    for doubt, where in other_act_doubts(case.history, case.fault, landing, injections, signal):
        case.unproven(doubt, *where)
    for doubt, where in background_doubts(case.plan, case.history, case.fault):
        case.unproven(doubt, *where)
    for doubt, where in trigger_doubts(case.plan, case.history, case.artifacts, case.fault, landing, injections):
        case.unproven(doubt, *where)
    observation = f"landed on {_target(case.fault)}, proven by {_proven_by(case, landing)}"
    case.collector.settle(case.planned, observation, case.line, landing.source, data=case.subject)


def _proven_by(case: _Case, landing: Event) -> str:
    """Return the evidence behind a proven fault, in words."""
    proof = "the kernel's exit status" if case.fault.role is not None or case.proof is None else case.proof.words
    evidence = _evidence_of(landing)
    held = (
        demands(case.fault.trigger).barriers
        and evidence
        and all(isinstance(entry.get("barrier"), dict) for entry in evidence)
    )
    return f"{proof}{', barrier' if held else ''} and process identity"


def _evidence_of(landing: Event) -> list[dict[str, Any]]:
    return [entry for entry in landing.data.get("evidence") or [] if isinstance(entry, dict)]


def _judge_landing(case: _Case, landing: Event, injections: list[Event]) -> None:
    if case.fault.role is not None:
        for doubt, where in beside_doubts(case.history, case.fault, landing, injections):
            case.unproven(doubt, *where)
        return
    planned = set(case.fault.ranks)
    evidence = _evidence_of(landing)
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


def _judge_rank(case: _Case, landing: Event, evidence: dict[str, Any], injections: list[Event]) -> None:
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
    _judge_identity(case, injection)
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
    end = wanted_end(case.fault)
    _judge_barrier(case, landing, evidence, injection, dead=end is not None)


def _sends_none(case: _Case) -> bool:
    """Return whether a fault of this package's kind ends its rank without a signal, or is proven by none."""
    if wanted_end(case.fault) is not None:
        return True
    return is_built_in(case.fault.kind) and case.proof is not None and "signal" not in case.proof.fields


def _judge_proof(case: _Case, at_rank: ProofCase) -> None:
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


def _planned_signal(fault: PlannedFault) -> int | None:
    """Return the signal that a fault of this kind, or the plan, asks for; None where neither does."""
    if (end := wanted_end(fault)) is not None:
        return end.signal
    if (shown := effect_of(fault.kind).shows) is not None:
        return shown
    return signal_number(fault.parameters.get("signal"))


def _expected_signal(fault: PlannedFault, injection: Event) -> int | None:
    if wanted_end(fault) is None and _planned_signal(fault) is None:
        return signal_number(injection.data.get("signal"))
    return _planned_signal(fault)


def _judge_identity(case: _Case, injection: Event) -> None:
    """Judge that the hit process was the rank, by the harness's identification and by the agent inside it."""
    rank, attempt, pid = injection.rank, injection.attempt, injection.pid
    identified = [event for event in case.history.select("rank.found", attempt=attempt, rank=rank) if event.pid == pid]
    started = [event for event in case.history.select("agent.start", attempt=attempt, rank=rank) if event.pid == pid]
    node = identified[0].data.get("node") if identified else None  # nodes may have PIDs of their own
    launchers = [
        event
        for event in case.history.select("launcher.found", attempt=attempt)
        if event.pid == pid and event.data.get("node") == node
    ]
    if launchers:
        role = launchers[0].data.get("role", "launcher")
        case.unproven(f"process {pid} was the {role} and not rank {rank}", launchers[0].source, injection.source)
    if not identified:
        case.unproven(f"process {pid} was never identified as rank {rank}", injection.source)
    elif (doubt := identity_doubt(identified, injection)) is not None:
        observation = f"process {pid} is not proven to be the one identified as rank {rank}: {doubt}"
        case.unproven(observation, injection.source, *places(identified))
    if not started:
        case.unproven(f"no agent of rank {rank} has recorded from process {pid}", injection.source)
    target = injection.data.get("target_rank")
    if target is not None and target != rank:
        case.unproven(f"the injection was aimed at rank {target}", injection.source)


def _judge_barrier(case: _Case, landing: Event, evidence: dict[str, object], injection: Event, *, dead: bool) -> None:
    trigger_demands = demands(case.fault.trigger)
    if not trigger_demands.barriers:
        return
    rank = injection.rank
    shown_barrier = evidence.get("barrier")
    held = barrier(shown_barrier.get("step"), shown_barrier.get("phase")) if isinstance(shown_barrier, dict) else None
    if held is None:
        if trigger_demands.every:
            case.unproven(f"no barrier in the evidence for rank {rank}", landing.source)
        return
    if held not in trigger_demands.barriers:
        observation = f"rank {rank} was at {place_text(held)}: the planned fault was not injected"
        case.unproven(observation, landing.source)
    recorded = (landing.data.get("step"), landing.data.get("phase"))
    if recorded != held and recorded != (None, None):
        case.unproven(f"the landing says step {recorded[0]}, phase {recorded[1]}, its evidence {held}", landing.source)
    barriers = [
        event
        for event in by_rank(case.history, "barrier.reached", injection.attempt or "").get(rank or 0, [])
        if event.data.get("fault") == case.fault.id and event.pid == injection.pid
    ]
    if not barriers:
        case.unproven(f"rank {rank}'s own history has no barrier of this fault", landing.source)
        return
    reached = barriers[-1]
    recorded_place = barrier(reached.data.get("step"), reached.data.get("phase"))
    if recorded_place != held:
        place = place_text(recorded_place) if recorded_place else "nothing about its place"
        observation = f"rank {rank}'s own history says {place}"
        case.unproven(f"{observation}; the evidence says {place_text(held)}", reached.source, landing.source)
    if (late := out_of_order(reached, injection)) is not None:
        case.unproven(f"rank {rank} was hit before it reached the barrier{late}", injection.source, reached.source)
    if dead:
        _judge_silence(case, reached)
        _judge_progress(case, reached, held)


def _events_of_process(history: History, like: Event) -> list[Event]:
    return [
        event
        for event in history.events
        if (event.attempt, event.rank, event.pid) == (like.attempt, like.rank, like.pid) and event.writer == like.writer
    ]


def _judge_silence(case: _Case, reached: Event) -> None:
    """Judge that a process ended at the barrier recorded nothing after it, except its own coming end.

    A checkpoint may be written in the background while the training is held.
    """
    later = [
        event
        for event in _events_of_process(case.history, reached)
        if event.seq > reached.seq and event.event not in (ACTING, WRITTEN)
    ]
    if str(reached.data.get("phase")).startswith(HANDLER):
        # The handler runs in a thread of its own, and only this thread is held.
        later = [
            event for event in later if event.event == "handler.exit" and event.data.get("name") == _handler(reached)
        ]
    if later:
        observation = (
            f"rank {reached.rank} went on after the barrier: {later[0].event} (and {len(later) - 1} more events)"
        )
        case.unproven(observation, later[0].source, reached.source)


def _handler(reached: Event) -> str:
    return str(reached.data.get("phase")).removeprefix(HANDLER)


def _judge_progress(case: _Case, reached: Event, held: Barrier) -> None:
    """Judge that the rank's own steps agree with the barrier: it was really there."""
    before = [event for event in _events_of_process(case.history, reached) if event.seq < reached.seq]
    begun = [step_of(event) for event in before if event.event == "step.begin"]
    ended = [step_of(event) for event in before if event.event == "step.end"]
    step, phase = held
    if step is None:  # a handler is called in any step
        return
    last_begun, last_ended = (max(begun, default=None), max(ended, default=None))
    if last_begun is None or (last_begun != step and not (phase == "step.begin" and last_begun == step - 1)):
        case.unproven(f"rank {reached.rank} had begun step {last_begun} at the barrier of step {step}", reached.source)
    if last_ended is not None and last_ended > step - (phase not in _AFTER_STEP):
        case.unproven(f"rank {reached.rank} had ended step {last_ended} at {phase} of step {step}", reached.source)


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
