"""The index of a directory of runs: a row a run, findings apart from failures, and what was never tried."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.statement_data import StatementData
from chaos.report.analyze import analyze
from chaos.report.index.coverage import ANY_PHASE, coverage
from chaos.report.index.render import write_index
from chaos.report.index.rows import is_known, read_results, rows
from chaos.report.page.model import FILE as PAGE
from chaos.report.result import Headline, Result
from chaos.report.result_file import write_result
from chaos.store.ownership import RunLock
from chaos.trends.from_result import row_of
from tests.kit.refused import refuse
from tests.kit.runs.good_run import good_run

Add = Callable[..., Path]


@pytest.fixture
def good(tmp_path: Path) -> Result:
    return analyze(good_run().write(tmp_path / "good"), write=False)


@pytest.fixture
def add(tmp_path: Path, good: Result) -> Add:
    """Add a run to the directory ``runs``; what is given of its result is changed."""

    def add(name: str, **changes: Any) -> Path:
        path = tmp_path / "runs" / name
        path.mkdir(parents=True)
        write_result(replace(good, **changes), path)
        return path

    return add


class Links(HTMLParser):
    """The links and the scripts of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(path: Path) -> Links:
    page = Links()
    page.feed(path.read_text("utf-8"))
    return page


def test_each_run_is_linked_to_its_page(add: Add, tmp_path: Path) -> None:
    (add("kill-1") / PAGE).write_text("")
    add("kill-2")
    page = parsed(write_index(tmp_path / "runs", []))
    assert set(page.links) == {f"kill-1/{PAGE}"}
    assert "2 runs" in page.text
    assert "Faults by phase" in page.text and "Runs in runs" in page.text


def test_failures_come_first(add: Add, tmp_path: Path) -> None:
    add("a-pass")
    add("b-fail", verdict="fail", reason="losses differ")
    add("c-unknown", verdict="unknown")
    results, _ = read_results(tmp_path / "runs")
    assert [row.run for row in rows(tmp_path / "runs", results)] == ["b-fail", "c-unknown", "a-pass"]


def test_a_known_finding_is_no_failure_and_no_pass(add: Add, good: Result, tmp_path: Path) -> None:
    failed = replace(good.checks[0], name="loss", verdict="fail")
    add("known", verdict="fail", checks=(failed,), plan={**good.plan, "finding": "F-1", "failing": ["loss"]})
    add("other", verdict="fail", checks=(failed,), plan={**good.plan, "finding": "F-1", "failing": ["recovery"]})
    results, _ = read_results(tmp_path / "runs")
    assert {path.name: is_known(result) for path, result in results} == {"known": True, "other": False}
    page = parsed(write_index(tmp_path / "runs", []))
    assert "1 ! failed as a known finding says" in page.text and "1 ✗ failed" in page.text


def test_a_fail_by_a_signature_is_known_in_any_scenario(add: Add, good: Result, tmp_path: Path) -> None:
    signed = replace(good.checks[0], name="hygiene", verdict="fail", data=StatementData(finding="F-15"))
    plain = replace(signed, data=StatementData())
    add("known", verdict="fail", checks=(signed,))
    add("other", verdict="fail", checks=(signed, plain))
    add("unsure", verdict="fail", checks=(signed, replace(plain, verdict="unknown")))
    add("both", verdict="fail", checks=(signed, plain), plan={**good.plan, "finding": "F-1", "failing": ["hygiene"]})
    results, _ = read_results(tmp_path / "runs")
    known = {path.name for path, result in results if is_known(result)}
    assert known == {"known", "both"}
    assert {path.name: row_of(path).finding for path, _ in results} == {
        "known": "sometimes",
        "other": "",
        "unsure": "",
        "both": "always",
    }


def test_a_fail_is_called_by_its_headline(add: Add, tmp_path: Path) -> None:
    headline = Headline("resume-1", "resume", "resume: the moments were not restored")
    add("headed", verdict="fail", reason="resume: 0x1.8p+1", headline=headline)
    page = parsed(write_index(tmp_path / "runs", []))
    assert headline.text in page.text and "0x1.8p+1" not in page.text


def test_a_run_whose_harness_ended_before_the_verdict_is_named(add: Add, good: Result, tmp_path: Path) -> None:
    add("good")
    for name, facts in (("killed", "{}"), ("fault-free", '{"baseline": true}'), ("working", "{}"), ("nothing", None)):
        path = tmp_path / "runs" / name
        path.mkdir()
        if facts is not None:
            (path / "plan.json").write_text("{}")
            (path / "run.json").write_text(facts)
    with RunLock.acquire(tmp_path / "runs" / "working"):
        _, unread = read_results(tmp_path / "runs")
    assert [entry.run for entry in unread] == ["killed"]
    assert "its harness ended before the verdict: run `chaos analyze" in unread[0].reason
    assert "Not read" in parsed(write_index(tmp_path / "runs", [])).text


def test_a_directory_that_may_not_be_looked_into_is_named_and_hides_no_other(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("good")
    refuse(monkeypatch, add("private"))
    results, unread = read_results(tmp_path / "runs")
    assert ([path.name for path, _ in results], [entry.run for entry in unread]) == (["good"], ["private"])
    assert "Permission denied" in unread[0].reason


def test_a_result_that_cannot_be_read_is_named(add: Add, tmp_path: Path) -> None:
    add("good")
    newer = add("newer") / "result.json"
    newer.write_text(newer.read_text().replace('"schema_version": 1', '"schema_version": 99', 1))
    page = parsed(write_index(tmp_path / "runs", []))
    assert "Not read" in page.text and "schema_version 99" in page.text and "1 run," in page.text
    assert "read it with a newer chaos" in page.text and "chaos analyze" not in page.text


def test_a_link_in_the_directory_is_not_followed(add: Add, tmp_path: Path) -> None:
    run = add("good")
    (tmp_path / "runs" / "latest").symlink_to(run)
    results, _ = read_results(tmp_path / "runs")
    assert [path.name for path, _ in results] == ["good"]


def test_markup_of_a_job_stays_text(add: Add, tmp_path: Path) -> None:
    add("evil", verdict="fail", reason="<script>alert(1)</script>", scenario='"><img src=x>')
    page = parsed(write_index(tmp_path / "runs", []))
    assert not {"script", "img"} & set(page.tags)
    assert "<script>alert(1)</script>" in page.text


def test_the_page_allows_no_script_and_no_request(add: Add, tmp_path: Path) -> None:
    add("good")
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in write_index(tmp_path / "runs", []).read_text("utf-8")


def test_a_fault_that_never_landed_was_not_tried(good: Result) -> None:
    (fault,) = good.faults
    missed = replace(good, faults=(replace(fault, evidence=()),))
    assert coverage([good], ["kill", "hang"]).never == ("hang",)
    assert coverage([missed], ["kill", "hang"]).never == ("hang", "kill")


def test_faults_are_counted_by_phase_mechanism_and_target(good: Result) -> None:
    timed = {**good.plan, "faults": [{**good.plan["faults"][0], "trigger": {"after": 3}}]}
    tried = coverage([good, good, replace(good, plan=timed)], [])
    assert tried.cells == {("kill", "step.end"): 2, ("kill", ANY_PHASE): 1}
    assert tried.mechanisms == {("kill", "TTP"): 3}
    assert tried.roles == {("kill", "another replica"): 3}


def test_the_first_rank_and_a_whole_group_are_roles_of_their_own(good: Result) -> None:
    def struck(ranks: list[int]) -> Result:
        return replace(good, plan={**good.plan, "faults": [{**good.plan["faults"][0], "ranks": ranks}]})

    roles = coverage([struck([0]), struck([0, 2]), struck([3])], []).roles
    assert {role for _, role in roles} == {"the first of its replica group", "a whole replica group", "another replica"}


def test_an_empty_directory_has_an_empty_page(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert "0 runs" in parsed(write_index(tmp_path / "runs", ["kill"])).text
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(OSError, match="runs"):
        write_index(tmp_path / "runs", [])
