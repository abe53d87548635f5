"""Part of check ``mechanism``: torchrun stopped every rank and started every rank again, and stayed itself."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.evidence.timestamp import Timestamp
from chaos.history.reader import History
from chaos.mechanisms.all_ranks_phases import started_again
from chaos.mechanisms.all_ranks_processes import judge_launcher, judge_order, judge_same_launcher, old_and_new
from chaos.mechanisms.all_ranks_state import judge_checkpoint, judge_cost
from chaos.mechanisms.case import Case
from chaos.mechanisms.elastic.crashed import judge_crashed
from chaos.mechanisms.elastic.ends import judge_ends
from chaos.mechanisms.elastic.lost_node import judge_lost_node
from chaos.mechanisms.elastic.named import judge_named
from chaos.mechanisms.elastic.phases import phase_ends
from chaos.mechanisms.elastic.progress import judge_progress
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.registry import Rule
from chaos.plan.model import Plan


def judge(case: Case) -> None:
    """Judge the processes by torchrun's record, which collected their exit statuses, and by the kernel's."""
    number, collector = case.window.number, case.collector
    expected = f"torchrun stops all ranks and starts all again in recovery {number}, and stays itself"
    old, new = old_and_new(case)
    if not new:
        collector.fail(
            expected, f"no rank was started again in recovery {number}", case.line, data=about(case.window.hit)
        )
        collector.close()
        return
    judge_launcher(case, new, expected)
    judge_same_launcher(case, old, new, expected)
    collector.settle(expected, f"{len(new)} processes in place of {len(old)}", case.line)
    judge_ends(case, old)
    judge_order(case, old, on_each_node=True)
    judge_checkpoint(case, new)
    judge_cost(case, old)
    judge_named(case, old)


def _judge_launch(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    judge_progress(plan, history, artifacts, collector)
    judge_lost_node(plan, history, artifacts, collector)
    judge_crashed(plan, history, artifacts, collector)


def _phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    return phase_ends(launch.plan, launch.history, after)


RULE = Rule(handlers=(), judge=judge, phase_ends=_phase_ends, judge_launch=_judge_launch, acted=started_again)
