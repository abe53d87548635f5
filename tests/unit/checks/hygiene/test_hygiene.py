"""Check ``hygiene``: every process ended, every fault was undone, and nothing is left behind."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "hygiene") == {"pass"}


def test_a_port_that_is_still_open_fails(run: GoodRun, judged: Judge) -> None:
    run.only("hygiene").update(ports=[8118])
    assert said(judged(run), "hygiene", "fail", "ports still open: 8118")


def test_without_the_look_around_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("hygiene")
    assert said(judged(run), "hygiene", "unknown", "no check was made")
