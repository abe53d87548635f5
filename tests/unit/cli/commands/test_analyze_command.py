"""`chaos analyze` on a run's directory, and what it writes against its documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from chaos.evidence.first_errors import FirstError
from chaos.report.html.document import SYMBOLS
from chaos.report.page.model import FILE as PAGE
from chaos.report.result import Headline, PodResult
from chaos.trends.runs import read_runs
from tests.kit.runs.good_run import good_run
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "result-format.md"


def test_a_good_run_passes_again(chaos: Call, tmp_path: Path) -> None:
    run = good_run().write(tmp_path / "reports" / "kill-rank-1")
    ended = chaos("analyze", "kill-rank-1", "--reports", str(tmp_path / "reports"), "--json")
    assert ended.code == 0, ended.out
    assert json.loads(ended.out) == json.loads((run / "result.json").read_text())
    shown = chaos("analyze", str(run))
    assert (shown.code, "pass" in shown.out) == (0, True)


def test_the_page_and_the_row_of_a_run_that_is_judged_again_are_renewed(chaos: Call, tmp_path: Path) -> None:
    run = good_run()
    path = run.write(tmp_path / "reports" / "kill-rank-1")
    facts = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**facts, "run": path.name}))
    assert chaos("analyze", str(path)).code == 0
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name], "no store is made"
    assert not (path / PAGE).exists()
    assert [row.verdict for row in read_runs(path.parent).rows] == ["pass"]
    (path / PAGE).write_text("the page of a pass")
    next(file for file in (path / "history").iterdir() if file.name != "harness.jsonl").unlink()
    assert chaos("analyze", str(path)).code != 0
    (row,) = read_runs(path.parent).rows
    result = json.loads((path / "result.json").read_text())
    assert row.verdict == result["verdict"] != "pass"
    assert f"<title>{SYMBOLS[row.verdict]} {row.verdict}" in (path / PAGE).read_text("utf-8")


def test_a_run_without_its_plan_is_bad_usage(chaos: Call, tmp_path: Path) -> None:
    run = good_run().write(tmp_path / "run")
    (run / "plan.json").unlink()
    ended = chaos("analyze", str(run))
    assert ended.code == 64


def test_every_key_of_a_result_is_documented(chaos: Call, tmp_path: Path) -> None:
    result = json.loads(chaos("analyze", str(good_run().write(tmp_path / "run")), "--json").out)
    keys = {f"{part}.{key}" for part in ("recovery", "made") for key in result[part]} | set(result)
    keys |= {f"{part}[].{key}" for part in ("faults", "checks") for entry in result[part] for key in entry}
    keys |= {f"pods[].{field.name}" for field in fields(PodResult)}  # a run of this host has none
    keys |= {f"first_errors[].{field.name}" for field in fields(FirstError)}  # one that passes has none
    keys |= {f"headline.{field.name}" for field in fields(Headline)}
    section = DOCUMENT.read_text().split("## result.json")[1].split("## summary.json")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall("`([^`]+)`", row)} == keys
