"""A page shows each recovery of its run with its own phases and faults."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from chaos.checks.judge import judge
from chaos.checks.recovery import phases
from chaos.checks.recovery.phases import NO_RECOVERY
from chaos.report.analyze import result_of
from chaos.report.page.data import page_of
from chaos.report.page.model import PageData
from tests.kit.runs.good_run import GoodRun
from tests.oracle.archive import read_archive
from tests.unit.report.page.conftest import PageOf

RUN = Path(__file__).parents[3] / "oracle" / "runs" / "plain-arf-twice-clean.tar.xz"
"""Rank 2 is replaced by ARF; it is killed again, ARF fails since rank 3 dies meanwhile, and TTP saves."""


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    directory = tmp_path_factory.mktemp("runs") / "run"
    read_archive(RUN, directory)
    judgement = judge(directory)
    return page_of(directory, judgement, result_of(directory, judgement))


def test_each_recovery_has_its_phases_and_only_the_last_one_budgets(twice: PageData) -> None:
    first, second = twice.recoveries
    assert (first.mechanism, first.faults, first.budget) == ("ARF", ("first",), None)
    assert [phase.name for phase in first.phases] == ["detection", "stop", "restart", "rebuild", "repair", "first step"]
    assert {phase.budget for phase in first.phases} == {None}
    assert first.total == pytest.approx(sum(phase.seconds or 0 for phase in first.phases))
    assert (second.faults, second.phases[2].name) == (("second",), "save")
    assert all(phase.budget is not None for phase in second.phases)


def test_the_phases_of_all_recoveries_stand_behind_the_rows_in_order(twice: PageData) -> None:
    bands = twice.timeline.phases
    assert [band.name for band in bands].count("detection") == 2
    assert all(before.end <= after.begin + 1e-6 for before, after in pairwise(bands))


def test_each_fault_is_noticed_by_its_own_recovery(twice: PageData) -> None:
    noticed = {fault.id: fault.noticed for fault in twice.timeline.planned}
    ends = [band.end for band in twice.timeline.phases if band.name == "detection"]
    assert noticed == {"first": ends[0], "second": ends[1], "inside": None}


def test_a_run_without_measured_phases_says_why(run: GoodRun, page: PageOf) -> None:
    run.replan(mechanism=None, recoveries=())
    (recovery,) = page(run).recoveries
    assert (recovery.phases, recovery.reason) == ((), NO_RECOVERY)


def test_odd_evidence_of_an_earlier_recovery_keeps_no_page_from_being_made(
    run: GoodRun, page: PageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object) -> list[object]:
        raise ValueError("odd")

    monkeypatch.setattr(phases, "recovery_windows", raises)
    assert page(run).recoveries
