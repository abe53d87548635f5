"""The map of checkpoints says who saved and who loaded."""

from __future__ import annotations

from tests.kit.runs.good_run import GROUPS, SAVED, GoodRun, record
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


def test_a_file_that_a_fault_has_replaced_by_an_older_one_is_damaged(run: GoodRun, page: PageOf) -> None:
    file = f"rank_0/ttp_rank_0-1_{SAVED}.ckpt"
    evidence = [{"rank": 0, "file": file, "before": "a", "after": "b", "older": "rank_0/ttp_rank_0-1_4.ckpt"}]
    run.add("harness", record(12.2, "fault.landed", fault="damage", kind="stale", ranks=[0], evidence=evidence))
    cell = next(cell for cell in page(run).checkpoints.cells if cell.rank == 0)
    assert cell.state == "damaged"
    assert "damaged by fault damage (history/harness.jsonl:" in cell.text


def test_a_save_after_the_damage_is_another_file(run: GoodRun, page: PageOf) -> None:
    evidence = [{"rank": 0, "file": f"rank_0/ttp_rank_0-1_{SAVED}.ckpt", "before": "a", "after": "b"}]
    run.add("harness", record(11.2, "fault.landed", fault="damage", kind="stale", ranks=[0], evidence=evidence))
    assert {cell.state for cell in page(run).checkpoints.cells} == {"saved"}


def test_a_file_of_which_a_statement_fails_is_marked(run: GoodRun, page: PageOf) -> None:
    saved = run.saved[0]
    name = next(name for name in saved.state if name.endswith("weight"))
    saved.state = {**saved.state, name: saved.state[name] + 1}
    assert {cell.rank: cell.state for cell in page(run).checkpoints.cells} == {0: "failing", 1: "saved"}


def test_a_planned_save_that_no_entitled_rank_has_begun_is_missing(run: GoodRun, page: PageOf) -> None:
    run.drop("checkpoint.begin", rank=1)
    cells = {cell.rank: cell for cell in page(run).checkpoints.cells}
    assert {rank: cell.state for rank, cell in cells.items()} == {0: "saved", 1: "missing"}
    assert (cells[1].step, cells[1].planned) == (SAVED, True)


def test_another_survivor_may_save_in_the_place_of_the_planned_rank(run: GoodRun, page: PageOf) -> None:
    for name in ("checkpoint.begin", "checkpoint.end"):
        run.only(name, rank=1).update(rank=3)
    assert {(cell.rank, cell.planned) for cell in page(run).checkpoints.cells} == {(0, True), (3, True)}


def test_a_rank_that_only_began_to_load_has_not_loaded(run: GoodRun, page: PageOf) -> None:
    run.drop("load.end", rank=2)
    cell = next(cell for cell in page(run).checkpoints.cells if cell.rank == 0)
    assert (cell.loaded_by, cell.tried_by) == ((0,), (2,))
