"""128 plain ranks on a small machine: a kill is judged as of four, and what is said of many alike is said once."""

from __future__ import annotations

import pytest

from tests.rehearsal.kit import Chaos, said

pytestmark = pytest.mark.nightly

RANKS = 128
SECONDS = 3600.0


def test_a_kill_of_one_of_very_many_ranks_passes(fresh: Chaos) -> None:
    done = fresh.start_run("plain-kill-rank.yaml", "--set", f"ranks={RANKS}").end(SECONDS)
    assert done.code == 0, f"{done.errors}\n{said(done.json['checks'])}"
    run = done.run
    assert len(run.history.select("rank.exit", attempt="train")) == RANKS
    assert len(run.history.select("step.end", attempt="resume")) == RANKS * 7
    assert run.left() == []
