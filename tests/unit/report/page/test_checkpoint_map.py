"""The map of checkpoints says who saved and who loaded."""

from __future__ import annotations

from tests.kit.good_run import GROUPS, SAVED, GoodRun
from tests.unit.report.page.conftest import PageOf


def test_each_group_has_a_saver_whose_file_its_ranks_load(run: GoodRun, page: PageOf) -> None:
    checkpoints = page(run).checkpoints
    assert checkpoints.steps == (SAVED,)
    assert checkpoints.groups == GROUPS
    assert {cell.rank: cell.loaded_by for cell in checkpoints.cells} == {group[0]: group for group in GROUPS}
    assert {(cell.kind, cell.state, cell.planned) for cell in checkpoints.cells} == {("end-of-life", "saved", True)}


def test_a_save_without_an_end_was_cut_off(run: GoodRun, page: PageOf) -> None:
    run.drop("checkpoint.end", rank=0)
    states = {cell.rank: cell.state for cell in page(run).checkpoints.cells}
    assert states == {0: "cut off", 1: "saved"}


def test_a_file_that_is_gone_is_lost(run: GoodRun, page: PageOf) -> None:
    del run.saved[0]
    states = {cell.rank: cell.state for cell in page(run).checkpoints.cells}
    assert states == {0: "lost", 1: "saved"}
