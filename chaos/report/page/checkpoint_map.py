"""The checkpoints by rank and step: who saved, which ranks loaded the file, what a fault did to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.damage import as_saved, change_of
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
_END_OF_LIFE = "end-of-life"


@dataclass(frozen=True)
class _Loads:
    """The ranks that have loaded a file, and those that have only begun to."""

    loaded: tuple[int, ...] = ()
    tried: tuple[int, ...] = ()


def checkpoint_map(
    plan: Plan, history: History, artifacts: Artifacts, failing: Collection[str] = frozenset()
) -> CheckpointMap:
    """Return every save that a rank has recorded, with its file's state and the ranks that have read it.

    ``failing`` are files of which a statement fails. A planned save of which there is none is shown as missing.
    """
    loads = _loads(history)
    ended = {_key(event) for event in history.select("checkpoint.end")}
    cells = []
    for begin in history.select("checkpoint.begin"):
        step = step_in(begin)
        if begin.rank is not None and step is not None:
            whole = _key(begin) in ended
            cells.append(_cell(plan, history, artifacts, begin, step, loads, failing, whole=whole))
    cells += _missing(plan, cells)
    newest = sorted(cells, key=lambda cell: (cell.step, cell.rank))[-MOST_CELLS:]
    left_out = len(cells) - len(newest)
    readers = {rank for cell in newest for rank in (*cell.loaded_by, *cell.tried_by)}
    return CheckpointMap(
        tuple(sorted({cell.step for cell in newest})),
        tuple(sorted({cell.rank for cell in newest} | readers)),
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
    loads: Mapping[PurePosixPath, _Loads],
    failing: Collection[str],
    *,
    whole: bool,
) -> SavedCell:
    path, rank = _finished(str(begin.data.get("path"))), begin.rank or 0
    kind, readers = str(begin.data.get("kind") or "periodic"), loads.get(_in_job(path), _Loads())
    change, kept, recorded = change_of(history, path, begin.mono), artifacts.locate(path), artifacts.recorded(path)
    if change is not None:
        state, reason = "damaged", f" by fault {change.data.get('fault')} ({change.source})"
    elif not whole:
        state, reason = "cut off", ""
    elif kept is None:
        state, reason = "lost", ""
    elif recorded in failing or artifacts.relative(kept) in failing:
        state, reason = "failing", ": a statement about it fails"
    else:
        state, reason = "saved", ""
    planned = plan.checkpoint is not None and kind == _END_OF_LIFE and rank in _entitled(plan)
    read = f"; loaded by {ranks_text(readers.loaded)}" if readers.loaded else ""
    read += f"; {ranks_text(readers.tried)} began to load it" if readers.tried else ""
    text = f"rank {rank}, step {step}: {kind} checkpoint, {state}{reason}{read} ({begin.source})"
    return SavedCell(rank, step, recorded, kind, state, readers.loaded, readers.tried, planned, text)


def _entitled(plan: Plan) -> set[int]:
    """Return the ranks that may save an end-of-life checkpoint."""
    return set() if plan.checkpoint is None else {rank for ranks in plan.checkpoint.entitled.values() for rank in ranks}


def _missing(plan: Plan, cells: Collection[SavedCell]) -> Iterator[SavedCell]:
    """Yield the planned end-of-life checkpoints that no entitled rank has begun to save."""
    if plan.checkpoint is None or plan.checkpoint.step is None:
        return
    savers = {cell.rank for cell in cells if cell.kind == _END_OF_LIFE}
    for saver, ranks in plan.checkpoint.entitled.items():
        if savers.isdisjoint(ranks):
            step, file = plan.checkpoint.step, plan.checkpoint.files.get(saver, "")
            text = f"rank {saver}, step {step}: the plan expects an {_END_OF_LIFE} checkpoint, and none was begun"
            yield SavedCell(saver, step, file, _END_OF_LIFE, "missing", (), (), True, text)


def _loads(history: History) -> dict[PurePosixPath, _Loads]:
    """Return the ranks that have loaded each file, and those that began to load it and never ended."""
    begun: dict[PurePosixPath, set[int]] = defaultdict(set)
    ended: dict[PurePosixPath, set[int]] = defaultdict(set)
    for name, ranks in (("load.begin", begun), ("load.end", ended)):
        for event in history.select(name):
            if event.rank is not None and isinstance(event.data.get("path"), str):
                ranks[_in_job(as_saved(history, event.data["path"]))].add(event.rank)
    return {
        path: _Loads(tuple(sorted(ranks & ended[path])), tuple(sorted(ranks - ended[path])))
        for path, ranks in begun.items()
    }


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
