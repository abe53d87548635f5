"""The checkpoints by rank and step: who saved, which ranks loaded the file, what a fault did to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.damage import as_saved, is_damaged
from chaos.evidence.facts import ranks_text
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.report.page.model import CheckpointMap, SavedCell
from chaos.report.page.moments import step_in

MOST_CELLS = 40_000
"""Most checkpoints on a page: as many as 1,024 ranks save at 39 steps. The newest are kept."""
_UNFINISHED = "_tmp"
"""The end of the name of a directory whose checkpoint is not finished; it is renamed then."""


def checkpoint_map(plan: Plan, history: History, artifacts: Artifacts) -> CheckpointMap:
    """Return every save that a rank has recorded, with its file's state and the ranks that have read it."""
    loads = _loads(history)
    ended = {_key(event) for event in history.select("checkpoint.end")}
    cells = []
    for begin in history.select("checkpoint.begin"):
        step = step_in(begin)
        if begin.rank is not None and step is not None:
            whole = _key(begin) in ended
            cells.append(_cell(plan, history, artifacts, begin, step, loads, whole=whole))
    newest = sorted(cells, key=lambda cell: (cell.step, cell.rank))[-MOST_CELLS:]
    left_out = len(cells) - len(newest)
    return CheckpointMap(
        tuple(sorted({cell.step for cell in newest})),
        tuple(sorted({cell.rank for cell in newest} | {rank for cell in newest for rank in cell.loaded_by})),
        tuple(tuple(group) for group in plan.layout.replica_groups),
        tuple(newest),
        f"{left_out:,} older checkpoints are left out." if left_out else "",
    )


def _cell(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    begin: Event,
    step: int,
    loads: Mapping[PurePosixPath, tuple[int, ...]],
    *,
    whole: bool,
) -> SavedCell:
    path, rank = _finished(str(begin.data.get("path"))), begin.rank or 0
    kind, readers = str(begin.data.get("kind") or "periodic"), loads.get(_in_job(path), ())
    if is_damaged(history, path):
        state = "damaged"
    elif not whole:
        state = "cut off"
    elif artifacts.locate(path) is None:
        state = "lost"
    else:
        state = "saved"
    planned = plan.checkpoint is not None and kind == "end-of-life" and rank in plan.checkpoint.entitled
    read = f"; loaded by {ranks_text(readers)}" if readers else ""
    text = f"rank {rank}, step {step}: {kind} checkpoint, {state}{read} ({begin.source})"
    return SavedCell(rank, step, artifacts.recorded(path), kind, state, readers, planned, text)


def _loads(history: History) -> dict[PurePosixPath, tuple[int, ...]]:
    """Return the ranks that have loaded each file."""
    ranks: dict[PurePosixPath, set[int]] = defaultdict(set)
    for event in history.select("load.begin"):
        if event.rank is not None and isinstance(event.data.get("path"), str):
            ranks[_in_job(as_saved(history, event.data["path"]))].add(event.rank)
    return {path: tuple(sorted(readers)) for path, readers in ranks.items()}


def _key(event: Event) -> tuple[int | None, int | None, str]:
    return event.rank, event.pid, str(event.data.get("path"))


def _finished(path: str) -> str:
    """Return the path that a save's file has when all of it is finished."""
    return PurePosixPath(*(part.removesuffix(_UNFINISHED) for part in PurePosixPath(path).parts)).as_posix()


def _in_job(path: str) -> PurePosixPath:
    """Return a recorded path from the job's directory on: one process may have used it, another the whole path."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") and "job" in parts:
        parts = parts[len(parts) - parts[::-1].index("job") :]
    return PurePosixPath(*parts)
