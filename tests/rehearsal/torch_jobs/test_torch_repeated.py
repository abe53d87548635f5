"""Luck decides nothing of a PyTorch job: the same recovery again and again, and good recoveries drawn at random."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

SECONDS = 2 * 3600.0
"""Far more than it takes, for machines that do other things besides."""


@pytest.mark.parametrize(
    ("chosen", "runs"),
    [
        ((SHIPPED / "torch" / "torch-kill-rank.yaml", "--times", "10"), 10),
        (("--random", "60", "--kind", "torch", "--seed", "11"), 60),
    ],
    ids=["the same recovery", "random recoveries"],
)
def test_no_run_of_many_is_blamed(fresh: Chaos, chosen: tuple[str | Path, ...], runs: int) -> None:
    done = fresh.start("soak", *chosen, "--jobs", "2", "--json", "--reports", fresh.reports).end(SECONDS)
    assert done.code == 0, done.errors
    assert sum(cell["verdicts"]["pass"] for cell in done.json["cells"]) == runs
