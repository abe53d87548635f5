"""Defects in the processes of a real job are caught, and such a run is taken for no other and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.selftest.acts import acts_of
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES
from chaos.selftest.live_run import write_defective
from tests.rehearsal.kit import Chaos, Done, checks_of, said

LIVE = {defect.name: defect for defect in catalogue() if defect.layer != FILES}
_MANY_RUNS_SECONDS = 2 * 3600.0
"""For a base with twenty defects, each a run of its own, on a busy machine."""

FEW = ("copy-broken-off", "random-draws-repeated", "second-error-not-repaired")
"""A defect of each layer, on ranks in plain Python. The first is tried every day."""


def selftest(chaos: Chaos, cache: Path, *names: str) -> Any:
    only = [option for name in names for option in ("--only", name)]
    started = chaos.start("selftest", "--json", "--jobs", "1", *only, env={"XDG_CACHE_HOME": str(cache)})
    done = started.end(_MANY_RUNS_SECONDS)
    assert done.code == 0, done.errors
    return done.json


@pytest.mark.parametrize("names", [FEW[:1], pytest.param(FEW[1:], marks=pytest.mark.nightly)])
def test_a_defect_of_each_layer_is_caught(fresh: Chaos, tmp_path: Path, names: tuple[str, ...]) -> None:
    assert {LIVE[name].layer for name in FEW} == {"SDK", "device layer", "job"}
    rows = selftest(fresh, tmp_path, *names)["rows"]
    assert {row["name"]: row["outcome"] for row in rows} == dict.fromkeys(names, "caught")
    assert all(row["acts"] for row in rows)


def test_a_defect_whose_code_is_not_reached_has_not_acted(fresh: Chaos, tmp_path: Path) -> None:
    never_copied = replace(LIVE["copy-broken-off"], base="live-plain-ttp")
    done = fresh.run(write_defective(never_copied, tmp_path), "--baseline", "none")
    assert (done.run.result["verdict"], acts_of(done.run.path)) == ("pass", ())


@pytest.mark.nightly
@pytest.mark.parametrize("base", sorted({defect.base for defect in LIVE.values()}))
def test_every_defect_of_a_base_is_caught(chaos: Chaos, tmp_path: Path, base: str) -> None:
    answer = selftest(chaos, tmp_path, base)
    # The option names a base, so the defects in the files of its good run come along.
    wanted = {defect.name for defect in catalogue() if defect.base == base}
    assert {row["name"]: row["outcome"] for row in answer["rows"]} == dict.fromkeys(wanted, "caught")


@pytest.fixture
def with_orphan(once: Callable[[str, Callable[[Chaos], Done]], Done], tmp_path: Path) -> Done:
    """A run whose rank leaves a process behind that carries nothing of the run."""
    return once("with-orphan", lambda chaos: chaos.run(write_defective(LIVE["hidden-orphan"], tmp_path)))


@pytest.mark.nightly
def test_a_run_with_a_defect_says_so(with_orphan: Done) -> None:
    first, *others = with_orphan.run.result["simulated"]
    assert first == {"part": f"a seeded defect: {LIVE['hidden-orphan'].inside}", "layer": "every layer"}
    assert others
    assert "a seeded defect" in with_orphan.run.path.joinpath("run.json").read_text("utf-8")


@pytest.mark.nightly
def test_what_it_leaves_is_named_and_gone(with_orphan: Done) -> None:
    message = said([check for check in checks_of(with_orphan.run.result, "fail") if check["name"] == "hygiene"])
    assert "outlived the ranks of attempt train" in message and "sleep 3601" in message
    assert with_orphan.run.left() == []
    (left,) = with_orphan.run.history.select("job.leftovers", attempt="train")
    (orphan,) = left.data["orphans"]
    assert orphan["cmdline"] == ["sleep", "3601"]
    assert not psutil.pid_exists(orphan["pid"]) or psutil.Process(orphan["pid"]).cmdline() != orphan["cmdline"]


@pytest.mark.nightly
def test_it_tells_where_the_defect_acted(with_orphan: Done) -> None:
    (act,) = acts_of(with_orphan.run.path)
    assert (act.attempt, act.rank) == ("train", 0)
    assert act.step is not None and "left behind" in act.changed


@pytest.mark.nightly
def test_its_fault_free_run_has_no_defect(with_orphan: Done) -> None:
    described = with_orphan.run.path.joinpath("baseline", "run.json").read_text("utf-8")
    assert "seeded defect" not in described and with_orphan.run.baseline.select("step.end")
    assert acts_of(with_orphan.run.path / "baseline") == ()
