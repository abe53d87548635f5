"""The record of a soak. Documented: lines that are no run do not count."""

from __future__ import annotations

from pathlib import Path

from chaos.soak.soak import SoakRecord, still_to_run, tally
from tests.fuzz.mutate import mutate_json_lines
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it and add it up."""
    path = folder / "soak.jsonl"
    path.write_bytes(content)
    runs = SoakRecord(path).runs()
    cells = [("kill-rank", ""), ("kill-rank", "phase=forward")]
    assert len(list(still_to_run(cells, runs, 2))) <= 4
    for cell in cells:
        tally(cell, runs, "pass").to_json()


TARGET = Target("soak_record", mutate_json_lines, check)
