"""How far a harness has come, by what it has recorded in a reports directory of its own."""

from __future__ import annotations

from pathlib import Path

from chaos.history.reader import read_history
from chaos.run.directory import RUN_FILE


def _histories(place: Path) -> list[bytes]:
    """What the harness has recorded in its runs, the baseline's first."""
    paths = sorted(place.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime_ns)
    files = [path.parent / "history" / "harness.jsonl" for path in paths if not path.parent.is_symlink()]
    return [file.read_bytes() for file in files if file.exists()]


def recorded_lines(place: Path) -> int:
    """How many lines the harness has recorded so far, over all runs in ``place``."""
    return sum(text.count(b"\n") for text in _histories(place))


def reached(place: Path) -> str:
    """The last thing that it has recorded, in words."""
    runs = [path.parent for path in place.glob(f"*/{RUN_FILE}") if not path.parent.is_symlink()]
    events = [event for run in runs for event in read_history(run / "history").select(writer="harness")]
    last = max(events, key=lambda event: event.mono, default=None)
    return "nothing" if last is None else f"{last.attempt or 'run'}: {last.event}"
