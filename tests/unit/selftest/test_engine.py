"""One call of the selftest, without MindSpore: what is caught, missed, wrong, and what cannot be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.selftest.base import BaseUnusable
from chaos.selftest.defect import Defect, Mutate, Row
from chaos.selftest.engine import Engine
from chaos.selftest.records import recorded
from chaos.selftest.session import Result
from tests.kit.runs.good_run import good_run


class Notes:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.rows: list[Row] = []

    def note(self, text: str) -> None:
        self.said.append(text)

    def row(self, row: Row) -> None:
        self.rows.append(row)


def take(name: str, target: Path) -> Path:
    if name == "none":
        raise BaseUnusable("base none cannot be run: this machine lacks MindSpore")
    return good_run().write(target)


def files(name: str, mutate: Mutate, check: str = "loss", *reason: str, base: str = "good") -> Defect:
    return Defect(name, "It is spoilt.", "files", base, check, reason or ("first at rank 2, step 9",), mutate=mutate)


LOSS: Mutate = recorded(lambda records: records.digest(2, 9, "resume").update(loss=(0.5).hex()))
COST: Mutate = recorded(lambda records: records.first("agent.cost").update(hooks_us_median=11.0))
NOTHING: Mutate = recorded(lambda records: None)


def engine(place: Path, watcher: Notes, *, keep: bool = False, stop: Callable[[], None] = lambda: None) -> Engine:
    def live(defect: Defect, place: Path) -> Row:
        return Row(defect, "caught", 3.0, "seen live")

    return Engine(
        take_base=take,
        run_live=live,
        stop=stop,
        place=place,
        jobs=2,
        clock=lambda: 1.0,
        watcher=watcher,
        on_base=lambda name, run: watcher.note(f"{name}: {run.name}"),
        keep=keep,
    )


def test_each_defect_gets_its_row_in_order(tmp_path: Path) -> None:
    watcher = Notes()
    live = Defect("live", "It goes wrong.", "SDK", "good", "loss", ("x",), inside="package.module:function")
    rows = engine(tmp_path, watcher).run(
        [
            files("of-no-base", LOSS, base="none"),
            files("caught", LOSS),
            files("missed", COST),
            live,
            files("wrong", LOSS, "hygiene", "processes left"),
            files("unspoilt", NOTHING),
        ]
    )
    assert [(row.defect.name, row.outcome) for row in rows] == [
        ("of-no-base", "not run"),
        ("caught", "caught"),
        ("missed", "missed"),
        ("live", "caught"),
        ("wrong", "wrong reason"),
        ("unspoilt", "not run"),
    ]
    assert "lacks MindSpore" in rows[0].seen
    assert rows[1].seen.startswith("every loss equals the fault-free run's")
    assert rows[4].seen.startswith("loss fail: ")
    assert "the history is as it was" in rows[5].seen
    assert sorted(row.defect.name for row in watcher.rows) == sorted(row.defect.name for row in rows)
    assert "good: good" in watcher.said
    result = Result(tuple(rows), (), 5.0)
    assert (result.caught, result.good, result.not_run) == (2, False, True)
    assert {key: result.to_json()[key] for key in ("total", "caught", "seconds")} == {
        "total": 6,
        "caught": 2,
        "seconds": 5.0,
    }


@pytest.mark.parametrize("keep", [True, False])
def test_spoilt_runs_are_kept_only_if_that_is_asked_for(tmp_path: Path, keep: bool) -> None:
    engine(tmp_path, Notes(), keep=keep).run([files("caught", LOSS)])
    assert (tmp_path / "spoilt" / "caught" / "good" / "plan.json").exists() is keep
    assert (tmp_path / "bases" / "good" / "plan.json").exists()


def test_the_base_stays_as_it_was(tmp_path: Path) -> None:
    rows = engine(tmp_path, Notes()).run([files("first", LOSS), files("second", COST)])
    assert [row.outcome for row in rows] == ["caught", "missed"]


def test_an_interruption_ends_the_runs_that_go_on(tmp_path: Path) -> None:
    stopped: list[str] = []

    def interrupt(run_dir: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine(tmp_path, Notes(), stop=lambda: stopped.append("stopped")).run([files("one", interrupt)])
    assert stopped == ["stopped"]
    assert list((tmp_path / "spoilt").iterdir()) == []
