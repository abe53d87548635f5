"""What ranks note of their ends, for a controller outside of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.rehearsal import finished_ranks


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = {"run": "run-1", "attempt": "train", "history": str(tmp_path), "secret": str(tmp_path / "secret")}
    (tmp_path / "agent.json").write_text(json.dumps(configuration))
    monkeypatch.setenv("CHAOS_AGENT", str(tmp_path / "agent.json"))


def test_ends_are_counted_by_kind_and_a_rank_that_says_it_twice_counts_once() -> None:
    assert finished_ranks.count_noted(finished_ranks.TRAINED) == 0
    for rank in (0, 11, 11):
        finished_ranks.note(finished_ranks.TRAINED, rank)
    finished_ranks.note(finished_ranks.EXITING, 1)
    assert (finished_ranks.count_noted(finished_ranks.TRAINED), finished_ranks.count_noted(finished_ranks.EXITING)) == (
        2,
        1,
    )


def test_what_ranks_said_before_they_were_started_again_is_forgotten() -> None:
    finished_ranks.forget()
    finished_ranks.note(finished_ranks.EXITING, 1)
    finished_ranks.forget()
    assert finished_ranks.count_noted(finished_ranks.EXITING) == 0


def test_nothing_is_made_anew_where_the_runs_directory_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    configuration = {"run": "run-1", "attempt": "train", "history": str(tmp_path), "secret": str(gone / "secret")}
    (tmp_path / "agent.json").write_text(json.dumps(configuration))
    with pytest.raises(FileNotFoundError):
        finished_ranks.note(finished_ranks.TRAINED, 1)
    assert not gone.exists()
