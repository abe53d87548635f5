"""A run with a defect in its processes: the scenario of the base, held against the good run of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos.agent.start import Agent
from chaos.scenario.load import load_scenario
from chaos.selftest.acts import Act, acts_of
from chaos.selftest.base import BaseUnusable, scenario_of
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES, Defect
from chaos.selftest.job import defective
from chaos.selftest.launcher import Launcher, Ran, RunFailed
from chaos.selftest.live.acted import acted
from chaos.selftest.live_run import LiveRuns, write_defective
from tests.kit.runs.good_run import GoodRun, good_run

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
    """Makes a given run, and notes with what it was called; None: the harness fails. ``acts``: the defect has acted."""

    def __init__(self, run: GoodRun | None, *, acts: bool = True) -> None:
        super().__init__()
        self._acts = acts
        self.calls: list[tuple[str, Sequence[str]]] = []
        self.made: list[Path] = []
        self._run = run

    def run(self, scenario: Path, reports: Path, *, cores: int, options: Sequence[str] = ()) -> Ran:
        self.calls.append((scenario.read_text("utf-8"), options))
        if self._run is None:
            raise RunFailed("chaos run ended with 3: it broke")
        self.made.append(self._run.write(reports / f"run-{len(self.calls)}"))
        for rank in (0, 2, 2) if self._acts else ():
            acted(process(self.made[-1], rank, step=len(self.calls)), "the loss is another")
        return Ran(self.made[-1], "whatever it says")


def process(run: Path, rank: int | None, *, step: int) -> Agent:
    """What an extension of the agent is given in a process of this run."""
    configuration = SimpleNamespace(attempt="resume", history=str(run / "history"))
    barriers = None if rank is None else SimpleNamespace(step=step)
    return cast(
        Agent, SimpleNamespace(configuration=configuration, place=SimpleNamespace(rank=rank), barriers=barriers)
    )


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
    run.only("digest", attempt="resume", rank=2, step=8)["loss"] = (3.0).hex()
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


def test_a_defect_that_has_changed_nothing_is_not_caught_whatever_the_checks_say(tmp_path: Path) -> None:
    row = live(Fixed(spoilt(), acts=False), Bases()).run(DEFECT, tmp_path)
    assert (row.outcome, row.acts, row.caught) == ("did not act", (), False)
    assert row.seen.startswith("the defect has changed nothing; all the same fail: ")
    assert live(Fixed(good_run(), acts=False), Bases()).run(DEFECT, tmp_path).outcome == "did not act"


def test_a_row_tells_where_and_when_the_defect_acted(tmp_path: Path) -> None:
    row = live(Fixed(spoilt()), Bases()).run(DEFECT, tmp_path)
    assert row.acts == (Act("resume", 0, 1, "the loss is another"),)  # one process, whatever it says later
    assert row.to_json()["acts"] == [{"attempt": "resume", "rank": 0, "step": 1, "changed": "the loss is another"}]


def test_every_process_in_which_a_defect_acts_is_told_also_one_without_a_rank(tmp_path: Path) -> None:
    acted(process(tmp_path, None, step=0), "nobody is asked")
    if (child := os.fork()) == 0:
        acted(process(tmp_path, 1, step=3), "half of it")
        os._exit(0)
    os.waitpid(child, 0)
    assert acts_of(tmp_path) == (Act("resume", None, None, "nobody is asked"), Act("resume", 1, 3, "half of it"))


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


@pytest.mark.parametrize(
    "defect", [defect for defect in catalogue() if defect.layer != FILES], ids=lambda one: one.name
)
def test_what_is_written_is_the_base_with_the_defect_in_it(defect: Defect, tmp_path: Path) -> None:
    (ours,) = load_scenario(write_defective(defect, tmp_path)).cells
    (base,) = load_scenario(scenario_of(defect.base)).cells
    arguments = (*base.scenario.job.arguments, f"--defect={defect.inside}")
    kind = defective(base.scenario.job.kind)
    job = base.scenario.job.model_copy(update={"kind": kind, "arguments": arguments})
    assert ours.scenario == base.scenario.model_copy(update={"name": defect.name, "job": job})
