"""Exports: OpenMetrics that a scraper reads, a dashboard of these metrics, and annotations at the scenario's line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chaos.trends.annotations import github, gitlab, relative
from chaos.trends.openmetrics import FAMILIES, openmetrics
from chaos.trends.row import PhaseTime
from chaos.trends.store import FILE, changing, put_rows
from tests.kit.runs.many_runs import PHASES, a_row
from tests.unit.cli.kit import Ended

SAMPLE = re.compile(r'(?P<name>[a-z_]+)\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\[\\n"])*",?)+)\} (?P<value>-?[0-9.e+-]+)')
ANNOTATED = a_row(3, verdict="fail", headline="Resume: 50% of the moments,\nnot restored: rank 1", headline_id="r1")


def samples(text: str) -> list[tuple[str, str, float]]:
    """The samples of an OpenMetrics text, each of a family that its lines declare, in its block."""
    found, family, known = [], "", set()
    *lines, last, end = text.split("\n")
    assert (last, end) == ("# EOF", "")
    for line in lines:
        if line.startswith("# TYPE "):
            family = line.split()[2]
            assert family not in known, "a family has one block"
            known.add(family)
        elif not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match["name"] in (family, f"{family}_total", f"{family}_info")
            found.append((match["name"], match["labels"], float(match["value"])))
    return found


def test_metrics_have_the_newest_verdict_times_and_counts() -> None:
    rows = [*(a_row(number) for number in range(3)), ANNOTATED]
    found = {(name, labels): value for name, labels, value in samples(openmetrics(rows))}
    own = 'scenario="kill-rank",cell="",platform="local",sdk="standin",ranks="4"'
    assert found["chaos_runs_total", f'{own},verdict="pass"'] == 3
    assert found["chaos_verdict", f'{own},chaos_verdict="fail"'] == 1
    assert found["chaos_verdict", f'{own},chaos_verdict="pass"'] == 0
    assert found["chaos_recovery_phase_seconds", f'{own},phase="load"'] == PHASES["load"]
    assert found["chaos_recovery_phase_budget_seconds", f'{own},phase="load"'] == 60


def test_labels_are_escaped() -> None:
    text = openmetrics([a_row(0, 'a"b\\c\nd')])
    assert 'scenario="a\\"b\\\\c\\nd"' in text
    assert samples(text)


def test_a_phase_that_a_row_has_twice_is_one_sample() -> None:
    text = openmetrics([replace(a_row(), phases=(PhaseTime("load", 1.0), PhaseTime("load", 2.0)))])
    found = [(name, labels) for name, labels, _ in samples(text)]
    assert len(found) == len(set(found))


def test_no_run_is_a_text_without_samples() -> None:
    assert samples(openmetrics([])) == []


def test_a_unit_is_the_end_of_the_name() -> None:
    assert [family.name for family in FAMILIES if family.unit and not family.name.endswith(f"_{family.unit}")] == []


def test_the_dashboard_reads_the_metrics_that_are_exported_and_all_of_them(chaos: Callable[..., Ended]) -> None:
    dashboard = chaos("export", "--format", "grafana")
    asked = json.loads(dashboard.out)
    read = set(re.findall(r"\bchaos_\w+(?=\{)", " ".join(panel["targets"][0]["expr"] for panel in asked["panels"])))
    assert read == {name for name, _, _ in samples(openmetrics([a_row()]))}
    assert len({panel["id"] for panel in asked["panels"]}) == len(asked["panels"])


def test_github_shows_a_failure_at_the_line_of_the_scenario() -> None:
    assert github([a_row(0), ANNOTATED], Path("/work")) == (
        "::error file=scenarios/kill-rank.yaml,line=12,title=chaos%3A kill-rank::kill-rank: fail: "
        f"Resume: 50%25 of the moments,%0Anot restored: rank 1 (run {ANNOTATED.run})\n"
    )
    assert github([replace(ANNOTATED, verdict="unknown")], Path("/work")).startswith("::warning ")
    assert github([replace(ANNOTATED, scenario="a,b:c\n::error::x")], Path()).count("\n") == 1


def test_gitlab_has_a_fingerprint_for_each_way_to_break() -> None:
    (entry,) = json.loads(gitlab([ANNOTATED], Path("/work")))
    assert entry["location"] == {"path": "scenarios/kill-rank.yaml", "lines": {"begin": 12}}
    assert entry["severity"] == "major"
    again, other = replace(ANNOTATED, run="another"), replace(ANNOTATED, headline_id="r2")
    both = json.loads(gitlab([ANNOTATED, replace(ANNOTATED, run="another", platform="ssh")], Path()))
    assert len({entry["fingerprint"] for entry in both}) == 2, "GitLab shows one entry of each fingerprint"
    assert json.loads(gitlab([again], Path()))[0]["fingerprint"] == entry["fingerprint"]
    assert json.loads(gitlab([other], Path()))[0]["fingerprint"] != entry["fingerprint"]


def test_what_passed_since_or_is_a_known_finding_is_no_annotation() -> None:
    assert github([ANNOTATED, a_row(4)], Path()) == ""
    assert json.loads(gitlab([replace(ANNOTATED, finding="always")], Path())) == []
    assert github([replace(ANNOTATED, finding="beyond")], Path()).startswith("::error ")


def test_a_cell_that_has_not_run_for_a_week_is_no_annotation() -> None:
    assert github([ANNOTATED, a_row(9, "other")], Path()).startswith("::error ")
    assert github([ANNOTATED, a_row(11, "other")], Path()) == ""


def test_a_path_is_that_in_the_work_tree() -> None:
    assert relative("/work/scenarios/a.yaml", Path("/work")) == "scenarios/a.yaml"
    assert relative("/elsewhere/a.yaml", Path("/work")) == "a.yaml"
    assert relative("../../a.yaml", Path("/work")) == "a.yaml"
    assert relative("", Path("/work")) == ""


def test_the_command_prints_each_form(chaos: Callable[..., Ended], reports: Path) -> None:
    reports.mkdir()
    with changing(reports / FILE) as connection:
        put_rows(connection, [ANNOTATED])
    assert chaos("export", "--format", "openmetrics").out.endswith("# EOF\n")
    assert chaos("export", "--format", "github").out.startswith("::error ")
    assert len(json.loads(chaos("export", "--format", "gitlab").out)) == 1
    assert chaos("export").code == 64
