"""Part of check ``mechanism``: RSC killed every rank and started every rank again, and the launcher stayed."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.facts import TRAIN, exit_status, signal_number
from chaos.evidence.statement_data import about
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.mechanisms.all_ranks_phases import started_again
from chaos.mechanisms.all_ranks_processes import judge_launcher, judge_order, old_and_new
from chaos.mechanisms.all_ranks_state import judge_checkpoint, judge_cost
from chaos.mechanisms.case import Case
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.rsc.phases import phase_ends
from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault

SIGKILL = 9
HANDLERS: tuple[str, ...] = ()
"""RSC has no part in the SDK: it calls no handler."""


def judge(case: Case) -> None:
    """Judge the processes by the launcher's record, which collected their exit statuses, and by the kernel's."""
    collector, expected = case.collector, _expected(case)
    old, new = old_and_new(case)
    if not new:
        collector.fail(
            expected,
            f"no rank was started again in recovery {case.window.number}",
            case.line,
            data=about(case.window.hit),
        )
        collector.close()
        return
    judge_launcher(case, new, expected)
    _judge_ends(case, old)
    collector.settle(expected, f"{len(new)} processes in place of {len(old)}", case.line)
    judge_order(case, old)
    judge_checkpoint(case, new)
    judge_cost(case, old)


def _expected(case: Case) -> str:
    return f"RSC kills all ranks and starts all again in recovery {case.window.number}, under the same launcher"


def _judge_ends(case: Case, old: dict[int, Event]) -> None:
    """Judge that ranks that no fault hit were killed; they had no reason to end by themselves."""
    collector, expected = case.collector, _expected(case)
    # Over a broken link, or where a rank hangs, collectives may give up by themselves, before the agent kills the rank.
    faults = case.window.faults
    gave_up = any(_breaks_link(fault) or fault.effect.hangs for fault in faults)
    for rank in range(case.plan.layout.ranks):
        start = old.get(rank)
        ends = [] if start is None else case.history.select("rank.exit", attempt=TRAIN, rank=rank, pid=start.pid)
        if not ends:
            collector.unknown(
                expected,
                f"how rank {rank}'s process before the restart ended is not recorded",
                case.line,
                data=about(rank),
            )
        elif rank not in case.window.hit and not gave_up and signal_number(ends[0].data.get("signal")) != SIGKILL:
            collector.fail(
                expected, f"rank {rank} was not killed: {exit_status(ends[0])}", ends[0].source, data=about(rank)
            )


def _breaks_link(fault: PlannedFault) -> bool:
    """Return whether the job notices a broken link; within one server no card may use the link."""
    return effect_of(fault.kind).breaks_link and fault.effect.stops_training


def _phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    return phase_ends(launch.plan, launch.history, after)


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=_phase_ends, acted=started_again)
