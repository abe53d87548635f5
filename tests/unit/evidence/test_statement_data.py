"""A statement says as data what its sentences say, whatever a record holds."""

from __future__ import annotations

import json
import math

import pytest

from chaos.evidence.collect import CAP, Collector
from chaos.evidence.statement_data import NO_DATA, StatementData, about, from_json
from tests.oracle.recorded_runs import RESULTS


def test_every_failure_of_a_recorded_run_says_what_it_is_about() -> None:
    results = [json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.iterdir())]
    failures = [check for result in results for check in result["checks"] if check["verdict"] == "fail"]
    assert len(failures) > 40
    assert [check for check in failures if not from_json(check["data"]).has_subject] == []


def test_only_what_is_known_is_written_and_it_is_read_back() -> None:
    data = about({3, 1}, step=8, file="job/a.ckpt", parameters=["w"], quantity="loss", expected=0.5, seen=math.inf)
    written = data.to_json()
    assert written == {
        "ranks": [1, 3],
        "step": 8,
        "file": "job/a.ckpt",
        "parameters": ["w"],
        "quantity": "loss",
        "expected": 0.5,
        "seen": "inf",
    }
    assert from_json({**written, "of a later version": 1}) == data
    assert NO_DATA.to_json() == {} and not NO_DATA.has_subject


@pytest.mark.parametrize("step", ["8", None, True, 8.0])
def test_what_a_record_holds_in_the_place_of_a_number_is_left_out(step: object) -> None:
    assert about([1, None, "2"], step=step) == about(1)  # type: ignore[arg-type, list-item]


def test_a_statement_that_stands_for_many_ranks_has_all_of_them() -> None:
    alike, others = Collector("c"), Collector("c")
    for rank in range(CAP + 3):
        alike.fail("all load", f"rank {rank} did not", data=about(rank))
        others.fail("all load", f"rank {rank} did not: {rank}", data=about(rank))
    (merged,) = alike.findings()
    assert merged.data == about(range(CAP + 3))
    assert others.findings()[-1].data == about(range(CAP, CAP + 3))


def test_findings_about_one_rank_whose_words_name_another_are_not_merged() -> None:
    collector = Collector("c")
    for rank in range(CAP):
        collector.fail("all load their own", f"rank {rank} loaded rank 9's file", data=about(rank))
    assert [finding.data for finding in collector.findings()] == [about(rank) for rank in range(CAP)]


def test_a_statement_without_data_is_equal_to_one_that_knows_nothing() -> None:
    assert StatementData() == NO_DATA == about()
