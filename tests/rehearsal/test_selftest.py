"""``chaos selftest`` on real runs: every defect is caught, and nothing passes without its evidence."""

from __future__ import annotations

import pytest

from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES
from tests.rehearsal.kit import Chaos

EVERYDAY = ("live-plain-damage", "pods")
"""A base that is run, on ranks in plain Python, and one that is kept as a recorded run."""


def test_every_defect_of_a_few_bases_is_caught_and_their_runs_are_kept(fresh: Chaos) -> None:
    cache = {"XDG_CACHE_HOME": str(fresh.reports.parent / "cache")}
    only = [option for name in EVERYDAY for option in ("--only", name)]
    done = fresh("selftest", "--layer", "files", *only, "--json", env=cache)
    answer = done.json
    assert [row for row in answer["rows"] if row["outcome"] != "caught"] == []
    assert done.code == 0, done.errors
    wanted = [defect for defect in catalogue() if defect.layer == FILES and defect.base in EVERYDAY]
    assert answer["caught"] == answer["total"] == len(wanted) >= 18
    # The runs are kept: the second time none is made.
    again = fresh(
        "selftest", "--only", next(one.name for one in wanted if one.base == EVERYDAY[0]), "--json", env=cache
    )
    assert again.code == 0, again.errors
    assert "making the run" in done.errors and "making the run" not in again.errors


@pytest.mark.nightly
def test_every_defect_in_the_files_of_finished_runs_is_caught(fresh: Chaos) -> None:
    cache = {"XDG_CACHE_HOME": str(fresh.reports.parent / "cache")}
    done = fresh("selftest", "--layer", "files", "--json", env=cache)
    answer = done.json
    assert [row for row in answer["rows"] if row["outcome"] != "caught"] == []
    assert answer["passed_without"] == []
    assert answer["stale_excuses"] == []
    assert done.code == 0, done.errors
    assert (
        answer["caught"] == answer["total"] == len([defect for defect in catalogue() if defect.layer == FILES]) >= 190
    )
    assert answer["evidence"]["held"] == answer["evidence"]["total"] >= 400


@pytest.mark.nightly
def test_every_defect_is_caught(fresh: Chaos) -> None:
    done = fresh("selftest", "--json", env={"XDG_CACHE_HOME": str(fresh.reports.parent / "cache")})
    assert [row for row in done.json["rows"] if row["outcome"] != "caught"] == []
    assert done.code == 0, done.errors
