"""Part of check ``mechanism``: the dead groups alone were started again, and lost ones got another group's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.base.rank_sets import spans
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.statement_data import about
from chaos.evidence.timestamp import Timestamp
from chaos.history.reader import History
from chaos.mechanisms.all_ranks_processes import judge_launcher, judge_same_launcher, old_and_new
from chaos.mechanisms.case import Case
from chaos.mechanisms.ft.batches import judge_batches
from chaos.mechanisms.ft.commits import judge_commits
from chaos.mechanisms.ft.compared import judge_recorded
from chaos.mechanisms.ft.healed import judge_healed
from chaos.mechanisms.ft.lighthouse import judge_stranded
from chaos.mechanisms.ft.moved import judge_moved
from chaos.mechanisms.ft.phases import phase_ends
from chaos.mechanisms.ft.votes import committed_after, votes
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.registry import Rule
from chaos.plan.describe import count
from chaos.plan.model import Plan


def judge(case: Case) -> None:
    """Judge the processes, the state of the groups that came back, and that the others trained on."""
    number, collector = case.window.number, case.collector
    expected = f"the launcher starts the dead groups again in recovery {number}, and stays itself"
    old, new = old_and_new(case)
    judge_launcher(case, {rank: event for rank, event in new.items() if rank in case.window.restarted}, expected)
    judge_same_launcher(case, old, new, expected)
    collector.settle(expected, f"ranks with a new process: {spans(sorted(new)) or 'none'}", case.line)
    _judge_going_on(case, {rank: event.pid for rank, event in old.items()})
    judge_healed(case)


def _judge_going_on(case: Case, old: Mapping[int, int | None]) -> None:
    """Judge that every other group commits steps after the fault, in the same process.

    A new process of such a group fails in the statements about processes.
    """
    expected = "the other groups train on"
    later = case.window.of(committed_after(case.history, case.window.begin))
    going_on = {
        vote.rank
        for vote in later
        if vote.rank is not None and vote.pid == old.get(vote.rank) and step_of(vote) > case.window.step
    }
    for rank in range(case.plan.layout.ranks):
        if rank not in case.window.copied and rank not in going_on:
            text = f"no step that rank {rank}'s process has committed after the fault is recorded"
            case.collector.unknown(expected, text, case.line, data=about(rank))
    case.collector.settle(expected, count(len(going_on - case.window.copied), "group"), case.line)


def _healed(history: History) -> bool:
    """Return whether a group that had been there before got its state from another one: in a new process, or its own.

    Without an earlier process or step it is a group that joins at the beginning (``init_sync``).
    """
    first: dict[int | None, int | None] = {}
    for event in history.select("agent.start", attempt=TRAIN):
        first.setdefault(event.rank, event.pid)
    trained: set[int | None] = set()
    for vote in votes(history):
        is_new = vote.pid != first.get(vote.rank, vote.pid)
        if vote.data.get("healed") is True and (vote.rank in trained or is_new):
            return True
        if vote.data.get("committed") is True:
            trained.add(vote.rank)
    return False


def _phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    return phase_ends(launch.plan, launch.history, after)


def _judge_launch(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    judge_commits(plan, history, artifacts, collector)
    judge_recorded(plan, history, artifacts, collector)
    judge_moved(plan, history, artifacts, collector)
    judge_batches(plan, history, artifacts, collector)
    judge_stranded(plan, history, collector)


RULE = Rule(handlers=(), judge=judge, phase_ends=_phase_ends, judge_launch=_judge_launch, acted=_healed)
