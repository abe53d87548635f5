"""The curves are those of the run and of its fault-free run, and the first difference is marked."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.kit.runs.good_run import LAST, SAVED, GoodRun, float_hex_next, loss_after
from tests.unit.report.page.conftest import PageOf


def test_a_good_run_lies_on_its_fault_free_run(run: GoodRun, page: PageOf) -> None:
    curves = page(run).curves
    assert curves.steps == tuple(range(1, LAST + 1))
    assert curves.run.loss == tuple(loss_after(0, step) for step in curves.steps)
    assert curves.baseline is not None and curves.baseline.loss == curves.run.loss
    assert curves.first_difference is None
    assert all(seconds is not None and seconds > 0 for seconds in curves.run.step_seconds)


def test_the_first_step_that_differs_is_marked(run: GoodRun, page: PageOf) -> None:
    event = run.only("digest", attempt="resume", rank=0, step=8)
    event["loss"] = float_hex_next(event["loss"])
    difference = page(run).curves.first_difference
    assert difference is not None and (difference.step, difference.curve) == (8, "loss")


def test_a_loss_that_is_not_finite_stays_and_what_is_no_number_leaves_a_gap(run: GoodRun, page: PageOf) -> None:
    run.only("digest", attempt="resume", rank=0, step=8)["loss"] = "nan"
    run.only("digest", attempt="resume", rank=0, step=9)["loss"] = ["0x1p+1"]
    curves = page(run).curves
    losses = dict(zip(curves.steps, curves.run.loss, strict=True))
    assert [step for step, loss in losses.items() if loss is None] == [9]
    assert [step for step, loss in losses.items() if loss is not None and math.isnan(loss)] == [8]


def test_the_fault_stands_at_its_step(run: GoodRun, page: PageOf) -> None:
    assert [(mark.step, mark.text.split(",")[0]) for mark in page(run).curves.faults] == [(SAVED, "kill rank 2")]


def test_without_a_fault_free_run_there_is_nothing_to_compare_with(run: GoodRun, page: PageOf) -> None:
    run.baseline = None
    curves = page(run).curves
    assert (curves.baseline, curves.first_difference) == (None, None)


def test_a_fault_without_a_step_stands_at_the_last_step_that_was_begun(run: GoodRun, page: PageOf) -> None:
    run.only("fault.landed")["step"] = None
    run.replan(faults=tuple(replace(fault, trigger={"handler": "clean"}) for fault in run.plan.faults))
    assert [mark.step for mark in page(run).curves.faults] == [SAVED + 1]


def test_steps_that_only_one_run_has_are_not_compared(run: GoodRun, page: PageOf) -> None:
    assert page(run).curves.compared == LAST
    run.drop("digest", attempt="resume", rank=0)
    curves = page(run).curves
    assert (len(curves.steps), curves.compared, curves.first_difference) == (LAST, SAVED, None)
