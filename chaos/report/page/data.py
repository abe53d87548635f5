"""The data of a page, from a run's directory and its judgement. Facts only: the verdict is the result's."""

from __future__ import annotations

from pathlib import Path, PurePath

from chaos.base.plain_files import read_plain
from chaos.checks.judge import Judgement
from chaos.report.page.checkpoint_map import checkpoint_map
from chaos.report.page.curves import curves
from chaos.report.page.excerpts import Excerpts, scenario_line, shown
from chaos.report.page.facts import environment, plan_facts, statement_facts
from chaos.report.page.model import Headline, PageData, Phase, Place, Statement, Text, Waterfall
from chaos.report.page.moments import Clock
from chaos.report.page.timeline import timeline
from chaos.report.page.twin import twin_seconds
from chaos.report.result import CheckResult, Result

_FIRST = {"fail": 0, "unknown": 1, "pass": 2}
_SCENARIO = "scenario.yaml"
_MOST_LINES = 5_000


def page_of(run_dir: Path, judgement: Judgement, result: Result) -> PageData:
    """Return the data of the page of a run that was judged."""
    plan, history = judgement.plan, judgement.history
    clock, excerpts = Clock(history), Excerpts(run_dir)
    statements = tuple(_statement(check, excerpts) for check in sorted(result.checks, key=_when))
    return PageData(
        run=run_dir.name,
        scenario_name=result.scenario,
        cell=result.cell,
        started=result.made.started,
        seconds=result.made.seconds,
        verdict=_headline(result),
        statements=statements,
        excerpts=excerpts.excerpts,
        scenario=_scenario(run_dir, plan.identity.source),
        not_checked=result.not_checked,
        timeline=timeline(plan, history, judgement.artifacts, judgement.recovery, clock),
        recoveries=tuple(_waterfalls(judgement, result, clock)),
        curves=curves(plan, history, judgement.artifacts),
        checkpoints=checkpoint_map(plan, history, judgement.artifacts),
        plan=plan_facts(plan),
        environment=environment(result),
    )


def _when(check: CheckResult) -> tuple[int, bool, int]:
    """Order statements by their verdict, and the deciding ones by time."""
    return _FIRST[check.verdict], check.order is None, check.order or 0


def _headline(result: Result) -> Headline:
    verdicts = [check.verdict for check in result.checks]
    passed, failed, unknown = (verdicts.count(word) for word in ("pass", "fail", "unknown"))
    sentence = result.reason if result.headline is None else result.headline.text
    return Headline(result.verdict, sentence, passed, failed, unknown)


def _statement(check: CheckResult, excerpts: Excerpts) -> Statement:
    places = tuple(Place(place, excerpts.key(place)) for place in check.where)
    return Statement(
        check.name,
        check.verdict,
        check.expected,
        check.seen,
        check.order,
        scenario_line(check.where),
        places,
        tuple(statement_facts(check.data)),
    )


def _scenario(run_dir: Path, source: str) -> Text:
    try:
        lines = read_plain(run_dir / _SCENARIO).decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    return Text(PurePath(source).name, tuple(shown(line) for line in lines[:_MOST_LINES]))


def _waterfalls(judgement: Judgement, result: Result, clock: Clock) -> list[Waterfall]:
    recovery = judgement.recovery
    if not recovery.phases:
        return []
    twin = twin_seconds(judgement.artifacts.baseline)
    budget = result.plan.get("budget") or {}
    budgets = budget.get("phases") or {}
    phases = tuple(
        Phase(
            phase.name,
            None if phase.nanoseconds is None else clock.seconds(phase.begin),
            phase.seconds,
            budgets.get(phase.name),
            twin.get(phase.name),
            phase.reason,
        )
        for phase in recovery.phases
    )
    return [Waterfall(recovery.mechanism, phases, result.recovery.total, budget.get("total"), recovery.reason)]
