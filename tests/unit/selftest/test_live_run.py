"""A run with a defect in its processes: the scenario of the base, held against the good run of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.scenario.load import load_scenario
from chaos.selftest.base import SCENARIOS, BaseUnusable
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES, Defect
from chaos.selftest.job import defective
from chaos.selftest.launcher import Launcher, Ran, RunFailed
from chaos.selftest.live_run import LiveRuns, write_defective
from tests.unit.good_run import GoodRun, good_run

DEFECT = Defect(
    name="wrong-loss",
    what="The loss is wrong.",
    layer="SDK",
    base="live-ttp",
    check="loss",
    reason=("first at rank 2, step 8",),
    inside="chaos.selftest.live.dump:step_too_low",
)


class Fixed(Launcher):
    """Makes a given run, and notes with what it was called; None: the harness fails."""

    def __init__(self, run: GoodRun | None) -> None:
        super().__init__()
        self.calls: list[tuple[str, Sequence[str]]] = []
        self.made: list[Path] = []
        self._run = run

    def run(self, scenario: Path, reports: Path, *, cores: int, options: Sequence[str] = ()) -> Ran:
        self.calls.append((scenario.read_text("utf-8"), options))
        if self._run is None:
            raise RunFailed("chaos run ended with 3: it broke")
        self.made.append(self._run.write(reports / f"run-{len(self.calls)}"))
        return Ran(self.made[-1], "whatever it says")


class Bases:
    """Counts the good runs that are taken; ``usable`` is False on a machine that can make none."""

    def __init__(self, *, usable: bool = True) -> None:
        self.taken: list[str] = []
        self._usable = usable

    def take(self, name: str, target: Path) -> Path:
        self.taken.append(name)
        if not self._usable:
            raise BaseUnusable("no good run")
        return target


def spoilt() -> GoodRun:
    run = good_run()
    run.one("digest", attempt="resume", rank=2, step=8)["loss"] = (3.0).hex()
    return run


def live(launcher: Launcher, bases: Bases, *, keep: bool = False) -> LiveRuns:
    return LiveRuns(bases.take, launcher, cores=1, clock=itertools.count().__next__, keep=keep)


def test_it_is_judged_from_its_files_and_held_against_the_good_run(tmp_path: Path) -> None:
    launcher, bases = Fixed(spoilt()), Bases()
    row = live(launcher, bases).run(DEFECT, tmp_path)
    assert (row.outcome, row.seconds) == ("caught", 1), row.seen
    ((text, options),) = launcher.calls
    assert options == ["--baseline", str(tmp_path / "good" / "live-ttp" / "baseline")]
    assert "kind: defective-rehearsal" in text and f"--defect={DEFECT.inside}" in text


def test_a_green_run_has_missed_it(tmp_path: Path) -> None:
    assert live(Fixed(good_run()), Bases()).run(DEFECT, tmp_path).outcome == "missed"


def test_a_base_is_taken_once_and_runs_are_kept_only_if_wanted(tmp_path: Path) -> None:
    for keep in (False, True):
        launcher, bases = Fixed(spoilt()), Bases()
        runs = live(launcher, bases, keep=keep)
        assert {runs.run(DEFECT, tmp_path / str(keep)).outcome for _ in range(2)} == {"caught"}
        assert bases.taken == ["live-ttp"]
        assert [path.exists() for path in launcher.made] == [keep, keep]


def test_without_a_good_run_or_a_result_it_was_not_run(tmp_path: Path) -> None:
    launcher, bases = Fixed(spoilt()), Bases(usable=False)
    runs = live(launcher, bases)
    rows = [runs.run(DEFECT, tmp_path) for _ in range(2)]
    assert [(row.outcome, row.seen) for row in rows] == [("not run", "no good run")] * 2
    assert (bases.taken, launcher.calls) == (["live-ttp"], [])
    row = live(Fixed(None), Bases()).run(DEFECT, tmp_path)
    assert (row.outcome, row.seen) == ("not run", "chaos run ended with 3: it broke")


@pytest.mark.parametrize("defect", [one for one in catalogue() if one.layer != FILES], ids=lambda one: one.name)
def test_what_is_written_is_the_base_with_the_defect_in_it(defect: Defect, tmp_path: Path) -> None:
    (ours,) = load_scenario(write_defective(defect, tmp_path)).cells
    (base,) = load_scenario(SCENARIOS / f"{defect.base}.yaml").cells
    arguments = (*base.scenario.job.arguments, f"--defect={defect.inside}")
    kind = defective(base.scenario.job.kind)
    job = base.scenario.job.model_copy(update={"kind": kind, "arguments": arguments})
    assert ours.scenario == base.scenario.model_copy(update={"name": defect.name, "job": job})
