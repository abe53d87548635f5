"""The recovery, split into phases. Each phase ends where the next one begins, so the parts add up to the total."""

from __future__ import annotations

from dataclasses import replace

from chaos.checks.recovery.measured import Phase, Recovery
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import TRAIN
from chaos.evidence.injection.on_node import ended_at
from chaos.evidence.mechanisms_seen import all_signs, mechanisms
from chaos.evidence.recovery_windows import Ambiguous, Window, recovery_windows
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.markers import SLACK_NS, Launch
from chaos.mechanisms.registry import RULES
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.response import ENDING, PHASES
from chaos.plan.phases import phase_names
from chaos.plan.recovery.registry import mechanisms as registered


def measure(plan: Plan, history: History, artifacts: Artifacts) -> Recovery:
    """Measure the recovery that decides, the last one, from its first fault on.

    Nothing raises: an unknown value is None with its reason.
    """
    if plan.response.mechanism is None or plan.response.mechanism not in PHASES:
        return Recovery(None, reason="no mechanism with measured phases is planned")
    acts = history.select("fault.injecting")
    if not acts:
        return Recovery(None, _unknown_phases(plan, "no fault was injected"), None, "no fault was injected")
    signs = set(mechanisms(history, artifacts, TRAIN).evidence)
    rule = RULES[plan.response.mechanism]
    signs -= {name for sign in all_signs() if sign.name in signs for name in sign.also}
    acted = ", ".join(_named(plan.response.mechanism, name, history) for name in sorted(signs)) or None
    if acted is None and rule.acted is not None and rule.acted(history):
        acted = plan.response.mechanism  # the SDK has no part in it, so neither handlers nor its log tell of it
    try:
        start = _begin(history, recovery_windows(plan, history)[-1])
    except Ambiguous as reason:
        return Recovery(None, _unknown_phases(plan, str(reason)), None, str(reason))
    try:
        begin = _hit(history, next(event for event in acts if event.mono >= start))
    except Ambiguous as reason:
        return Recovery(None, _unknown_phases(plan, str(reason)), None, str(reason))
    return _assemble(acted, begin, list(rule.phase_ends(Launch(plan, history, artifacts), begin.mono)))


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
        return Recovery(None, reason="no mechanism with measured phases is planned")
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


def _named(mechanism: str, sign: str, history: History) -> str:
    """Return the mechanism that left a sign; the rule may distinguish it from others with the same sign."""
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
