"""The cost of failures: measured recoveries, a stated rate of failures, and what a minute of each phase is worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.trends.cost import PUBLISHED, Cluster, Rate, cost_of, ettr
from chaos.trends.store import FILE, changing, put_rows
from tests.kit.runs.many_runs import a_row
from tests.unit.cli.kit import Ended

HOURLY = Cluster(1000, Rate(1000.0, "given by --mtbf-hours"))
"""A cluster in which a card fails every hour."""

PHASES = {"detection": 30.0, "load": 330.0}


def test_the_share_is_training_over_all_time() -> None:
    assert HOURLY.between == 3600.0
    assert ettr(HOURLY, recovery=360.0, lost=0.0) == pytest.approx(3600 / 3960)
    saving = Cluster(1000, HOURLY.rate, interval=600.0, save=6.0)
    assert ettr(saving, recovery=360.0, lost=300.0) == pytest.approx(3600 / (3600 + 36 + 360 + 300))


def test_phases_are_worth_what_they_take() -> None:
    (own,) = cost_of([a_row(number, phases=PHASES) for number in range(3)], HOURLY).mechanisms
    assert (own.mechanism, own.runs, own.recovery, own.lost) == ("TTP", 3, 360.0, 0.0)
    detection, load = own.phases
    assert own.ettr + detection.cost == pytest.approx(3600 / (3600 + 330))
    assert load.minute == pytest.approx(3600 / (3600 + 300) - own.ettr)
    assert detection.minute == detection.cost  # a phase of half a minute cannot get a minute shorter
    assert load.card_hours == pytest.approx(load.cost * 1000 * 730)


def test_a_mechanism_that_trains_again_loses_half_an_interval() -> None:
    rows = [a_row(0, phases=PHASES), a_row(1, phases=PHASES, mechanism="other", rollback=4.0)]
    lost = {own.mechanism: own.lost for own in cost_of(rows, Cluster(8, HOURLY.rate, 600.0)).mechanisms}
    assert lost == {"TTP": 0.0, "other": 300.0}
    lost = {own.mechanism: own.lost for own in cost_of(rows, Cluster(8, HOURLY.rate, step=12.0)).mechanisms}
    assert lost == {"TTP": 0.0, "other": 48.0}


def test_steps_that_no_run_has_recorded_are_not_counted_as_none() -> None:
    rows = [a_row(0, phases=PHASES, rollback=None), a_row(1, phases=PHASES, mechanism="other")]
    cost = cost_of(rows, Cluster(8, HOURLY.rate, 600.0))
    assert {own.mechanism: own.lost for own in cost.mechanisms} == {"TTP": 300.0, "other": 0.0}
    assert "no run recorded how many steps TTP trains again: half an interval is counted" in cost.assumed
    without = cost_of(rows, HOURLY)
    assert "no run recorded how many steps TTP trains again: none are counted" in without.assumed


def test_only_passing_runs_outside_soaks_are_measured() -> None:
    rows = [a_row(0, verdict="fail"), a_row(1, soak=True), a_row(2, total=None), a_row(3, mechanism="")]
    assert cost_of(rows, HOURLY).mechanisms == ()


def test_the_published_rate_is_named_with_its_source() -> None:
    cluster = Cluster(16_384, PUBLISHED["llama3"])
    assert cluster.between == pytest.approx(54 * 24 * 3600 / 419)  # about three hours
    assumed = " ".join(cost_of([a_row()], cluster).assumed)
    assert "arXiv 2407.21783" in assumed and "no Ascend cards" in assumed


@pytest.fixture
def stored(reports: Path) -> Path:
    reports.mkdir()
    with changing(reports / FILE) as connection:
        put_rows(connection, [a_row(number, phases=PHASES) for number in range(3)])
    return reports


def test_the_command_says_what_is_measured_and_what_is_assumed(chaos: Callable[..., Ended], stored: Path) -> None:
    ended = chaos("cost", "--ranks", "1000", "--mtbf-hours", "1000")
    assert ended.code == 0 and "90.909%" in ended.out
    assert "measured: recoveries and their phases: medians of 3 passing runs" in ended.out
    assert "assumed: a card fails once in 1,000 hours: given by --mtbf-hours" in ended.out
    assert "3 of 3 runs had a stand-in for the SDK" in ended.out
    assert "medians of 2 passing runs" in chaos("cost", "--ranks", "9", "--mtbf-hours", "9", "--last", "2").out
    answer = json.loads(chaos("cost", "--ranks", "1000", "--mtbf-hours", "1000", "--json").out)
    assert answer["between_failures"] == 3600.0


def test_a_rate_must_be_given_and_known(chaos: Callable[..., Ended], stored: Path) -> None:
    assert "give the rate of failures" in chaos("cost", "--ranks", "8").err
    assert "there is no rate 'x'; there are llama3" in chaos("cost", "--ranks", "8", "--published", "x").err
    assert chaos("cost", "--ranks", "8", "--mtbf-hours", "9", "--save-time", "3").code == 64


def test_without_a_recovery_the_cost_is_unknown(chaos: Callable[..., Ended], reports: Path) -> None:
    reports.mkdir()
    ended = chaos("cost", "--ranks", "8", "--mtbf-hours", "9")
    assert ended.code == 2 and "no mechanism acted in a passing run" in ended.out
