"""Part of check ``mechanism``: the job started again is protected again, so that the next fault is survived, too."""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, ranks_text
from chaos.evidence.protection import CONNECTED
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "every rank of the job started again has registered with the SDK's controller again"


def judge_watched(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the registrations in the SDK's own logs. Says nothing where the faulted launch's logs show none.

    The ranks' own records of it are judged by :mod:`chaos.checks.mechanism.protected`.
    """
    before = _registered(artifacts, TRAIN)
    if not before:
        return
    missing = sorted(set(range(plan.layout.ranks)) & before.keys() - _registered(artifacts, RESUME).keys())
    where = [before[rank] for rank in missing[:3]]
    if missing and not artifacts.sdk_events(RESUME):
        collector.unknown(EXPECTED, "there is no log of the SDK of attempt resume, so protection is not shown", *where)
    elif missing:
        collector.fail(EXPECTED, f"{ranks_text(missing)} did not", *where, data=about(missing))
    collector.settle(EXPECTED, f"{len(before)} ranks have", by_log=not history.select(CONNECTED, attempt=RESUME))


def _registered(artifacts: Artifacts, attempt: str) -> dict[int, str]:
    """Return the ranks that have registered in a launch, and where the log says so."""
    return {
        event.rank: event.source
        for event in artifacts.sdk_events(attempt)
        if event.kind == "ttp.connected" and event.rank is not None
    }
