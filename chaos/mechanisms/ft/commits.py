"""Part of check ``mechanism``: every step is committed by enough replica groups, and how many samples are dropped.

It holds with and without a fault. The number of groups that train each step is stated, as no rule limits it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from chaos.base.rank_sets import named, spans
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import step_of
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.ft.plan import NAME
from chaos.mechanisms.ft.votes import committed_after, committed_by_step
from chaos.plan.describe import count
from chaos.plan.model import Plan

ENOUGH = "no step is committed by fewer groups than the manager's min_replica_size"
COUNTED = "the participants that torchft counts in a step are the groups that commit it"
ONCE = "no group commits a step twice, unless a fault hits it"
AT_LAST = "the last step is trained by as many groups as any step before it"
SHARE = "the groups that each step is trained by, and the samples dropped, are recorded"


def judge_commits(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every committed step of the faulted launch. Says nothing where FT is off."""
    del artifacts
    if NAME not in plan.fault_tolerance.protection:
        return
    line, steps = line_of(plan, "mechanism"), committed_by_step(history)
    if not steps:
        for expected in (ENOUGH, COUNTED, ONCE, AT_LAST, SHARE):
            collector.unknown(expected, "no committed step is recorded", line)
        return
    for step, votes in steps.items():
        _judge_enough(step, votes, line, collector)
        _judge_counted(step, votes, line, collector)
    _judge_once(plan, history, line, collector)
    if reaches_the_end(plan):
        _judge_last(plan, steps, line, collector)
    collector.settle(ENOUGH, f"{len(steps)} steps are not", line)
    collector.settle(COUNTED, f"they are, in {len(steps)} steps", line)
    last = plan.training.last_step if reaches_the_end(plan) else max(steps)
    missing = [step for step in range(1, last + 1) if step not in steps]
    if missing:
        collector.unknown(SHARE, f"no commit of step {spans(missing)} is recorded", line)
    collector.settle(SHARE, f"{_shares(plan, steps)}; {_longest_gap(steps)}", line)


def _judge_once(plan: Plan, history: History, line: str, collector: Collector) -> None:
    """Judge that no committed step is lost: a group that has lost its state begins again with an earlier step.

    A lost group may have committed a step that the others train once more without it.
    """
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    seen: set[tuple[int | None, object]] = set()
    for vote in committed_after(history, 0):
        key = (vote.rank, vote.data.get("step"))
        if key in seen and vote.rank not in hit:
            text = f"rank {vote.rank} committed step {key[1]} again, so what was trained since then is lost"
            collector.fail(ONCE, text, line, vote.source, data=about(vote.rank, step=step_of(vote)))
            return
        seen.add(key)
    collector.settle(ONCE, f"{count(len(seen), 'commit')}", line)


def _judge_last(plan: Plan, steps: Mapping[int, Mapping[int, Event]], line: str, collector: Collector) -> None:
    """Judge that no group is left out for good: one that commits all steps, and adds nothing to them, is not back.

    A group that has not committed the step before may get its state in the last one.
    """
    step = plan.training.last_step
    most, last, before = max(map(_contributing, steps.values())), steps.get(step, {}), steps.get(step - 1, {})
    if not last:
        collector.unknown(AT_LAST, f"no commit of step {step} is recorded", line)
    elif (few := _contributing(last)) < most:
        out = {rank: vote for rank, vote in last.items() if vote.data.get("contributes") is not True}
        late = not out or any(vote.data.get("healed") is True and rank not in before for rank, vote in out.items())
        without = f", not by {named(sorted(out))}" if out else ""
        text = f"step {step} was trained by {few} of {most} groups{without}"
        where = (vote.source for vote in out.values())
        data = about(sorted(out), step=step, quantity="participants", expected=most, seen=few)
        (collector.unknown if late else collector.fail)(AT_LAST, text, line, *where, data=data)
    collector.settle(AT_LAST, f"by {most}", line)


def _judge_enough(step: int, votes: Mapping[int, Event], line: str, collector: Collector) -> None:
    for rank, vote in votes.items():
        least, took_part = vote.data.get("least"), vote.data.get("participants")
        if not isinstance(least, int) or not isinstance(took_part, int):
            text = f"the vote of rank {rank} on step {step} does not say how many groups took part"
            collector.unknown(ENOUGH, text, line, vote.source, data=about(rank, step=step))
        elif took_part < least:
            text = f"rank {rank} committed step {step} with {took_part} participants, and min_replica_size is {least}"
            data = about(rank, step=step, quantity="participants", expected=least, seen=took_part)
            collector.fail(ENOUGH, text, line, vote.source, data=data)


def _judge_counted(step: int, votes: Mapping[int, Event], line: str, collector: Collector) -> None:
    """Judge that the groups whose gradients count are as many as each of them takes the mean over.

    A group that gets its state in a step commits the step, and its own gradients are left out.
    """
    for rank, vote in votes.items():
        if vote.data.get("healed") is True and vote.data.get("contributes") is True:
            text = f"rank {rank} got its state in step {step}, and by the same vote its own gradients count"
            collector.unknown(COUNTED, text, line, vote.source, data=about(rank, step=step))
    contributing = [rank for rank, vote in votes.items() if vote.data.get("contributes") is True]
    for rank, vote in votes.items():
        took_part = vote.data.get("participants")
        if isinstance(took_part, int) and took_part != len(contributing):
            text = f"rank {rank} counts {took_part} participants in step {step}; {len(contributing)} contributed"
            data = about(rank, step=step, quantity="participants", expected=len(contributing), seen=took_part)
            # A group may have ended after it contributed, and before it could vote.
            report = collector.unknown if took_part > len(contributing) else collector.fail
            report(COUNTED, text, line, vote.source, data=data)
            return


def _shares(plan: Plan, steps: Mapping[int, Mapping[int, Event]]) -> str:
    """Return in words which steps were trained by how many groups."""
    groups = plan.layout.ranks
    fewer = {step: number for step, votes in steps.items() if (number := _contributing(votes)) < groups}
    if not fewer:
        return f"{groups} of {groups} groups in each of {len(steps)} steps, no sample dropped"
    dropped = sum(groups - number for number in fewer.values())
    return f"{'; '.join(_runs(fewer, groups))}; {dropped} of {groups * len(steps)} batches of groups dropped"


def _longest_gap(steps: Mapping[int, Mapping[int, Event]]) -> str:
    """Return in words the longest time between two steps, each by the group that committed it first."""
    firsts = [min(vote.mono for vote in votes.values()) for votes in steps.values()]
    gap = max((after - before for before, after in pairwise(firsts)), default=0)
    return f"at most {gap / 1e9:.3f} s between two of them"


def _runs(fewer: Mapping[int, int], groups: int) -> Iterator[str]:
    for number in sorted(set(fewer.values())):
        listed = [step for step, its in fewer.items() if its == number]
        yield f"{number} of {groups} groups in step {spans(listed)}"


def _contributing(votes: Mapping[int, Event]) -> int:
    return sum(vote.data.get("contributes") is True for vote in votes.values())
