"""The data of a page, from a run's directory and its judgement. Facts only: the verdict is the result's."""

from __future__ import annotations

from pathlib import Path, PurePath

from chaos.base.plain_files import read_plain
from chaos.checks.judge import Judgement
from chaos.report.page.checkpoint_map import checkpoint_map
from chaos.report.page.curves import curves
from chaos.report.page.excerpts import shown
from chaos.report.page.facts import environment, plan_facts
from chaos.report.page.model import Headline, PageData, Text
from chaos.report.page.moments import Clock
from chaos.report.page.recoveries import measured_recoveries, waterfalls
from chaos.report.page.statements import statements_of
from chaos.report.page.timeline import timeline
from chaos.report.result import Result

_SCENARIO = "scenario.yaml"
_MOST_LINES = 5_000


def page_of(run_dir: Path, judgement: Judgement, result: Result) -> PageData:
    """Return the data of the page of a run that was judged."""
    plan, history = judgement.plan, judgement.history
    clock = Clock(history)
    recoveries = measured_recoveries(judgement)
    statements, excerpts = statements_of(run_dir, plan, result)
    return PageData(
        run=run_dir.name,
        scenario_name=result.scenario,
        cell=result.cell,
        started=result.made.started,
        seconds=result.made.seconds,
        verdict=_headline(result),
        statements=statements,
        excerpts=excerpts,
        scenario=_scenario(run_dir, plan.identity.source),
        not_checked=result.not_checked,
        timeline=timeline(judgement, recoveries, clock),
        recoveries=waterfalls(judgement, recoveries, clock),
        curves=curves(plan, history, judgement.artifacts),
        checkpoints=checkpoint_map(plan, history, judgement.artifacts, _failing_files(result)),
        plan=plan_facts(plan),
        environment=environment(result),
    )


def _headline(result: Result) -> Headline:
    verdicts = [check.verdict for check in result.checks]
    passed, failed, unknown = (verdicts.count(word) for word in ("pass", "fail", "unknown"))
    sentence = result.reason if result.headline is None else result.headline.text
    return Headline(result.verdict, sentence, passed, failed, unknown)


def _failing_files(result: Result) -> frozenset[str]:
    failing = (check.data.file for check in result.checks if check.verdict == "fail")
    return frozenset(file for file in failing if file is not None)


def _scenario(run_dir: Path, source: str) -> Text:
    try:
        lines = read_plain(run_dir / _SCENARIO).decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    return Text(PurePath(source).name, tuple(shown(line) for line in lines[:_MOST_LINES]))
