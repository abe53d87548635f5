"""A writer's file of the history. Documented: nothing is raised; what cannot be read is a problem with its place."""

from __future__ import annotations

from pathlib import Path

from chaos.history.reader import read_history
from tests.fuzz.mutate import mutate_json_lines
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it as the history of a run of one writer."""
    (folder / "history").mkdir(exist_ok=True)
    (folder / "history" / "train-rank_0-1000.jsonl").write_bytes(content)
    history = read_history(folder / "history")
    assert all(problem.where.startswith("history") for problem in history.problems)
    assert history.events or history.problems
    for event in history.events[:3]:
        assert event in history.select(event.event, rank=event.rank)


TARGET = Target("history", mutate_json_lines, check)
