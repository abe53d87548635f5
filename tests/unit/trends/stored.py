"""A reports directory with a store and with runs that were judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.report.analyze import analyze
from chaos.trends.row import RunRow
from chaos.trends.runs import read_runs
from chaos.trends.store import FILE, changing, put_rows
from tests.kit.runs.good_run import good_run


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    directory = tmp_path / "reports"
    directory.mkdir()
    return directory


def finished(reports: Path, name: str = "run-1", **facts: Any) -> Path:
    """A run that was judged, with the run.json that a harness writes."""
    path = good_run().write(reports / name)
    known = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**known, "run": name, **facts}))
    analyze(path)
    return path


def stored(reports: Path) -> list[RunRow]:
    return list(read_runs(reports).rows)


def put(reports: Path, *rows: RunRow) -> None:
    with changing(reports / FILE) as connection:
        put_rows(connection, rows)
