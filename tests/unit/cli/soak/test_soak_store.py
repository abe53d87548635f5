"""The runs of a soak are marked in the store of runs: their times are those of a busy machine."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from chaos.cli.soak.runs import Soak
from chaos.cli.soak.view import SoakView
from chaos.soak.soak import SoakRun
from chaos.trends.store import FILE, changing, get_rows, put_rows
from tests.kit.runs.many_runs import a_row


def test_each_run_of_a_soak_is_marked_and_no_other(tmp_path: Path) -> None:
    first, second, other = rows = [a_row(number) for number in range(3)]
    with changing(tmp_path / FILE) as connection:
        put_rows(connection, rows)
    ended: Future[SoakRun | None] = Future()
    ended.set_result(SoakRun("kill-rank", "", "code", "pass", f"{first.run} {second.run}", 0.0, 1.0, 0.5))
    view = SoakView(1, 1, lambda text: None)
    assert Soak([], tmp_path, 1, 1, False, {}, "auto")._take({ended}, view) == set()
    assert view.outcomes == {"pass": 1}
    with changing(tmp_path / FILE) as connection:
        soaked = {row.run: row.soak for row in get_rows(connection)}
    assert soaked == {first.run: True, second.run: True, other.run: False}
