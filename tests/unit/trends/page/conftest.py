"""Rows of nights in which a phase got slower, a scenario failed, and a job's text is markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.trends.row import RunRow
from tests.kit.runs.many_runs import nights

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
SLOW_FROM = 60
FAILED = 20


def history(number: int = 100) -> list[RunRow]:
    """Nights with a slower phase from night 60 on, a failure at night 20, and an interrupted run at night 30."""
    rows = nights(5, number, slow_from=SLOW_FROM)
    rows = [replace(row, mindspore="2.9.0") if index >= 3 * SLOW_FROM else row for index, row in enumerate(rows)]
    rows[3 * FAILED] = replace(rows[3 * FAILED], verdict="fail", headline=f"Resume: {HOSTILE}")
    stopped = "interrupted; job ended; faults undone; nothing left"
    rows[3 * 30] = replace(rows[3 * 30], verdict="unknown", headline=stopped)
    return rows


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reports directory in which the newest run of kill-rank still has its page."""
    directory = tmp_path_factory.mktemp("reports") / "reports"
    run = directory / history()[-3].run
    run.mkdir(parents=True)
    (run / "report.html").write_text("<title>the run</title>")
    return directory
