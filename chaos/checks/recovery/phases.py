"""The recovery, split into phases. Each phase ends where the next one begins, so the parts add up to the total."""

from __future__ import annotations

from dataclasses import replace

from chaos.checks.recovery.measured import Phase, Recovery
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import RESUME, TRAIN
from chaos.evidence.injection.on_node import ended_at
from chaos.evidence.mechanisms_seen import all_signs, mechanisms
from chaos.evidence.recovery_windows import Ambiguous, Window, end_of_job, recovery_windows
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.markers import SLACK_NS, Launch
from chaos.mechanisms.registry import RULES, phase_ends
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.response import ENDING, PHASES
from chaos.plan.phases import RESTARTED, is_restart, phase_names
from chaos.plan.recovery.registry import mechanisms as registered

NO_RECOVERY = "no recovery is planned"
NO_RESTART = "no mechanism acts, and the job is not started again"


def measure(plan: Plan, history: History, artifacts: Artifacts) -> Recovery:
    """Measure the recovery that decides, the last one, from its first fault on.

    Nothing raises: an unknown value is None with its reason.
    """
    if not phase_names(plan):
        return Recovery(None, reason=NO_RECOVERY if plan.response.mechanism is None else NO_RESTART)
    acts = history.select("fault.injecting")
    if not acts:
        return Recovery(None, _unknown_phases(plan, "no fault was injected"), None, "no fault was injected")
    try:
        begin = _hit(history, _first_act(plan, history, acts))
    except Ambiguous as reason:
        return Recovery(None, _unknown_phases(plan, str(reason)), None, str(reason))
    acted = _acted(plan, history, artifacts)
    return _assemble(acted, begin, list(phase_ends(Launch(plan, history, artifacts), begin.mono)))


def _acted(plan: Plan, history: History, artifacts: Artifacts) -> str | None:
    """Return what acted, by the evidence; None without a sign of anything."""
    planned = plan.response.mechanism
    seen = mechanisms(history, artifacts, TRAIN, cleans_before_saving=plan.fault_tolerance.cleans_before_saving)
    signs = set(seen.evidence)
    signs -= {name for sign in all_signs() if sign.name in signs for name in sign.also}
    acted = sorted(_named(planned, name, history) for name in signs)
    if is_restart(plan):
        acted += [RESTARTED] if history.first("agent.start", attempt=RESUME) else []
    elif planned is not None and not acted and (was_active := RULES[planned].acted) is not None and was_active(history):
        acted = [planned]  # the SDK has no part in it, so neither handlers nor its log tell of it
    return ", ".join(acted) or None


def _first_act(plan: Plan, history: History, acts: list[Event]) -> Event:
    """Return the act with which the recovery that decides begins. Raises Ambiguous when it is not known."""
    if is_restart(plan):
        return end_of_job(plan, history)
    start = _begin(history, recovery_windows(plan, history)[-1])
    return next(event for event in acts if event.mono >= start)


def measure_earlier(plan: Plan, history: History, artifacts: Artifacts) -> tuple[tuple[Window, Recovery], ...]:
    """Measure the recoveries before the one that decides, each with its window.

    They have no budgets of their own, so no check judges their phases. Training goes on within the launch after each of
    them; a recovery that had to fail has no phases.
    """
    try:
        windows = recovery_windows(plan, history)
    except Ambiguous:
        return ()
    return tuple((window, _measure_window(plan, history, artifacts, window)) for window in windows[:-1])


def _measure_window(plan: Plan, history: History, artifacts: Artifacts, window: Window) -> Recovery:
    planned = None if window.recovery is None else window.recovery.mechanism
    if planned is None or planned in ENDING or planned not in PHASES:
        return Recovery(None, reason=NO_RECOVERY)
    try:
        begin = _hit(history, next(act for act in history.select("fault.injecting") if act.mono >= window.begin))
    except Ambiguous as reason:
        return Recovery(None, reason=str(reason))
    alone = replace(plan, response=replace(plan.response, mechanism=planned))
    ends = RULES[planned].phase_ends(Launch(alone, history, artifacts), begin.mono)
    return _assemble(planned, begin, [(name, _within(window, end)) for name, end in ends])


def _within(window: Window, end: Timestamp | str) -> Timestamp | str:
    """Return the end of a phase, or why it is not known: what comes after the next fault belongs to the next one."""
    if isinstance(end, str) or window.end is None or end.mono < window.end:
        return end
    return f"it had not ended at the next recovery's fault ({end.where})"


def _begin(history: History, window: Window) -> int:
    """Return the act of the first fault that the recovery answers.

    A mechanism that was tried before it may have answered an earlier one.
    """
    faults = () if window.recovery is None else window.recovery.faults
    acts = [event.mono for name in faults for event in history.select("fault.injecting", fault=name)]
    return min(acts, default=window.begin)


def _hit(history: History, act: Event) -> Timestamp:
    """Return the moment when the act hit its ranks: at once, unless the act gives them a grace time."""
    if effect_of(str(act.data.get("kind"))).grace is None:
        return Timestamp.of(act)
    landings = history.select("fault.landed", fault=act.data.get("fault"))
    end = ended_at(landings[0]) if landings else None
    if end is None or not act.mono <= end <= landings[0].mono:
        raise Ambiguous(f"the end of the node stopped by fault {act.data.get('fault')} is not recorded")
    return Timestamp(end, landings[0].source)


def _named(mechanism: str | None, sign: str, history: History) -> str:
    """Return the mechanism that left a sign; the rule may distinguish it from others with the same sign."""
    if mechanism is None or mechanism not in RULES:
        return sign
    signs, rule = registered()[mechanism].signs, RULES[mechanism]
    if signs is None or signs.name != sign or rule.named is None:
        return sign
    return rule.named(history)


def _unknown_phases(plan: Plan, reason: str) -> tuple[Phase, ...]:
    return tuple(Phase(name, None, reason) for name in phase_names(plan))


def _assemble(mechanism: str | None, begin: Timestamp, ends: list[tuple[str, Timestamp | str]]) -> Recovery:
    phases: list[Phase] = []
    before: Timestamp | str = begin
    for name, end in ends:
        if isinstance(end, Timestamp) and isinstance(before, Timestamp):
            if end.mono < before.mono - SLACK_NS - end.uncertainty(before):
                early = (before.mono - end.mono) / 1e9
                end = f"its end ({end.where}) is {early:.3f} s before its beginning ({before.where})"
            elif end.mono < before.mono:
                end = replace(end, mono=before.mono)
        if isinstance(end, Timestamp) and isinstance(before, Timestamp):
            where, by_log = (before.where, end.where), before.by_log or end.by_log
            error = end.uncertainty(before)
            phases.append(Phase(name, end.mono - before.mono, "", where, error, before.mono, by_log))
        else:
            reason = end if isinstance(end, str) else f"its beginning is not known: {before}"
            phases.append(Phase(name, None, reason))
        before = end
    if isinstance(before, str):
        return Recovery(mechanism, tuple(phases), None, before)
    total, error = before.mono - begin.mono, before.uncertainty(begin)
    return Recovery(mechanism, tuple(phases), total, "", error, begin.mono, before.by_log)
