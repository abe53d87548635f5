"""Part of check ``loss``: weights and optimizer state against the fault-free run.

They are compared by digest. Where the plan has a tolerance, samples decide about those whose digests differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.baseline import Baseline, at_baseline, differing
from chaos.evidence.collect import Collector
from chaos.evidence.facts import text_list
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.evidence.statement_data import STATE, about
from chaos.evidence.tolerances.agreement import Agreement, agreement
from chaos.history.event import Event
from chaos.plan.model import Plan

PARAMETERS = "weights and optimizer state equal the fault-free run's at every step that counts"


def judge_states(plan: Plan, baseline: Baseline, events: Mapping[tuple[int, int], Event], collector: Collector) -> None:
    """Judge every state that counts, and that the last state of the fault-free run was compared."""
    expected = _expected(plan)
    compared: dict[int, list[int]] = {rank: [] for rank in range(plan.layout.ranks)}
    wrong: set[int] = set()
    doubted: set[int] = set()
    nearest = Agreement("pass")
    for (rank, step), ours in sorted(events.items()):
        other = baseline.digests.get(rank, {}).get(step)
        if other is None or not other.data.get("parameters"):
            continue
        if plan.equivalence.comparable is not None and step > plan.equivalence.comparable.until:
            continue
        if not ours.data.get("parameters"):
            observation = f"no parameter digests of rank {rank} at step {step}"
            collector.unknown(expected, observation, ours.source, data=about(rank, step=step))
            continue
        compared.setdefault(rank, []).append(step)
        names = differing(ours.data["parameters"], other.data["parameters"])
        if not names or rank in wrong:
            continue
        agreed = _agreement(plan, names, ours, other)
        if agreed.verdict == "pass":
            nearest = max(nearest, agreed, key=lambda known: known.share)
            continue
        if agreed.verdict == "fail":
            wrong.add(rank)
        elif rank in doubted:
            continue
        doubted.add(rank)
        _report(expected, rank, step, names, agreed, ours, other, collector)
    _judge_coverage(plan, baseline, compared, expected, nearest, collector)


def _expected(plan: Plan) -> str:
    if plan.equivalence.exact:
        return PARAMETERS
    share = plan.equivalence.false_alarm
    rate = "" if share is None else f" (at most {share:.2%} of sound runs exceed a limit)"
    return f"{PARAMETERS}, within the tolerance{rate}"


def _agreement(plan: Plan, names: list[str], ours: Event, other: Event) -> Agreement:
    if plan.equivalence.exact:
        return Agreement("fail", names=tuple(names))
    return agreement(plan, names, ours, other)


def _report(
    expected: str,
    rank: int,
    step: int,
    names: list[str],
    agreed: Agreement,
    ours: Event,
    other: Event,
    collector: Collector,
) -> None:
    where = (ours.source, at_baseline(other))
    first = f"first at rank {rank}, step {step}"
    observation = f"{first}: {agreed.text}" if agreed.text else f"{first}: {len(names)} differ: {text_list(names)}"
    if agreed.verdict == "unknown":
        collector.unknown(expected, observation, *where, data=about(rank, step=step, parameters=list(agreed.names)))
        return
    name = agreed.names[0]
    data = about(
        rank,
        step=step,
        parameters=list(agreed.names),
        quantity=STATE,
        expected=other.data["parameters"].get(name),
        seen=ours.data["parameters"].get(name),
    )
    collector.fail(expected, observation, *where, data=data)


def _judge_coverage(
    plan: Plan,
    baseline: Baseline,
    compared: dict[int, list[int]],
    expected: str,
    nearest: Agreement,
    collector: Collector,
) -> None:
    """Judge that the last state of the fault-free run was compared on every rank."""
    last = plan.training.last_step if plan.equivalence.comparable is None else plan.equivalence.comparable.until
    if last < 1:
        return  # nothing is to be compared, as chaos.checks.scope says
    for rank, steps in compared.items():
        recorded = [
            step
            for step, event in baseline.digests.get(rank, {}).items()
            if event.data.get("parameters") and step <= last
        ]
        final = max(recorded, default=None)
        if final is None:
            collector.unknown(expected, f"the baseline has no parameter digests of rank {rank}", data=about(rank))
        elif final not in steps and (plan.resume.resumes or reaches_the_end(plan)):
            collector.unknown(
                expected,
                f"no parameter digests of rank {rank} at step {final}, the last of the baseline",
                data=about(rank, step=final),
            )
    states = f"{sum(map(len, compared.values()))} states on {plan.layout.ranks} ranks"
    collector.settle(expected, f"{states} are equal{_shared(nearest)}")


def _shared(nearest: Agreement) -> str:
    if not nearest.nearest:
        return ""
    return f", or differ by at most {nearest.share:.0%} of a limit (of {nearest.nearest})"
