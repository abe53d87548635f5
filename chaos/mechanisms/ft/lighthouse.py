"""Part of check ``mechanism``: without its lighthouse the job stands still, and every group ends by the timeout."""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, exit_status, places, signal_number, step_of
from chaos.evidence.fields import number
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.ft.votes import committed_after, votes
from chaos.plan.model import Plan

STILL = "without the lighthouse no step is committed that needs a new quorum"
ALONE = "without the lighthouse no group is started again"
ENDED = "without the lighthouse every group ends by a TimeoutError of its own, in the time that the plan gives"

_TIMEOUT = "TimeoutError"


def judge_stranded(plan: Plan, history: History, collector: Collector) -> None:
    """Judge what the groups do without the lighthouse. Says nothing where no fault ends it."""
    fault = next((fault for fault in plan.faults if fault.effect.strands), None)
    if fault is None:
        return
    line = line_of(plan, "mechanism")
    landings = history.select("fault.landed", attempt=TRAIN, fault=fault.id)
    if not landings:
        for expected in (STILL, ALONE, ENDED):
            collector.unknown(expected, f"nothing shows that fault {fault.id} has ended the lighthouse", line)
        return
    landing = landings[0]
    _judge_still(history, landing, line, collector)
    started = [event for event in history.select("agent.start", attempt=TRAIN) if event.mono >= landing.mono]
    if started:
        text = f"rank {started[0].rank} was started again"
        collector.fail(ALONE, text, line, *places(started[:3]), data=about(started[0].rank))
    collector.settle(ALONE, "none was", line)
    took = [_judge_end(plan, history, rank, landing, collector, line) for rank in range(plan.layout.ranks)]
    seconds = ", ".join(f"{time:.1f}" for time in took if time is not None)
    collector.settle(ENDED, f"{len(took)} groups do, after {seconds} s", line, landing.source)


def _judge_still(history: History, landing: Event, line: str, collector: Collector) -> None:
    """Judge the steps that are committed after the end. The quorum of one step may have been there before."""
    if not votes(history):
        collector.unknown(STILL, "no vote of any group is recorded", line)
        return
    later = committed_after(history, landing.mono)
    steps = sorted({step_of(vote) for vote in later})
    if len(steps) > 1:
        text = f"steps {', '.join(map(str, steps))} were committed after its end"
        collector.fail(STILL, text, line, *places(later[:3]), landing.source, data=about(step=steps[-1]))
    collector.settle(STILL, f"step {steps[0]} alone, whose quorum was there" if steps else "none is", line)


def _judge_end(
    plan: Plan, history: History, rank: int, landing: Event, collector: Collector, line: str
) -> float | None:
    """Judge the end of one group. Returns the seconds from the lighthouse's end to it; None where there is none."""
    exits = history.select("rank.exit", attempt=TRAIN, rank=rank)
    if not exits:
        collector.unknown(ENDED, f"how rank {rank} ended is not recorded", line, data=about(rank))
        return None
    end, how = exits[-1], exit_status(exits[-1])
    took = (end.mono - landing.mono) / 1e9
    errors = history.select("error.uncaught", attempt=TRAIN, rank=rank, pid=end.pid)
    data = about(rank, quantity="exit status", seen=how)
    if end.data.get("code") is None and signal_number(end.data.get("signal")) is None:
        collector.unknown(ENDED, f"the exit status of rank {rank} is not known", line, end.source, data=data)
    elif end.data.get("code") in (None, 0):
        collector.fail(ENDED, f"rank {rank} {how}, not by an error of its own", line, end.source, data=data)
    elif not errors:
        collector.unknown(ENDED, f"rank {rank} {how}, and no error of it is recorded", line, end.source, data=data)
    elif errors[-1].data.get("base") != _TIMEOUT:
        text = f"rank {rank} ended by {str(errors[-1].data.get('error'))[:120]}"
        collector.fail(ENDED, text, line, errors[-1].source, data=about(rank))
    limit = plan.response.budget.total
    if limit is None:
        collector.unknown(ENDED, "the plan does not say how long a group waits for the lighthouse", line)
    elif took > limit:
        late = f"rank {rank} ended {took:.1f} s after the lighthouse, and {limit:g} s are given"
        waited = _starved(history, landing.mono, end.mono)
        report = collector.fail if took - waited > limit else collector.unknown
        more = f"; other work on the machine kept the job waiting for a processor for {waited:.1f} s" if waited else ""
        report(ENDED, late + more, line, end.source, data=about(rank, quantity="s", expected=limit, seen=took))
    return took


def _starved(history: History, begin: int, end: int) -> float:
    """Return the seconds between two moments in which the machine had no processor for the job or the harness."""
    waits = (*history.select("job.starved"), *history.select("harness.starved"), *history.select("harness.stopped"))
    return sum(number(event.data, "seconds") or 0.0 for event in waits if begin <= event.mono <= end)
