"""The load that counts: of all files that a rank has read, the one with the state that the rank begins to train with.

A script may look into many checkpoints to find the newest. Reading a file is not yet going on from it, so the digests
of the state before the first step decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import state_at_resume, step_at_resume
from chaos.evidence.checkpoints.damage import loads_made
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, located
from chaos.evidence.checkpoints.parameters import is_appended, is_flag
from chaos.evidence.checkpoints.save_parts import are_of_one_directory, are_of_one_save
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.facts import RESUME, is_of_this_run, text_list
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.saved_state import SavedState

Files = Mapping[Path, OwnedCheckpoint]

_LISTED = 12
"""Loads that a statement lists; the rest are counted."""


@dataclass(frozen=True)
class Read:
    """One load of a rank, with the file that it read.

    ``file``, ``state`` and ``step`` are None where they are not known: the file was not kept, it is no checkpoint of
    the run, or it cannot be read.
    """

    load: Event
    file: OwnedCheckpoint | None
    state: SavedState | None
    step: int | None


def counted_loads(history: History, artifacts: Artifacts, rank: int, files: Files, of_kind: Files) -> list[Event]:
    """Return the loads of a rank after the resume that count.

    These are all loads where they read one step. Of several steps, it is the load of the file that equals the rank's
    state before its first step in the most parameters; where no file decides, all loads count. A load from outside the
    run always counts.

    Args:
        history: the record.
        artifacts: the files of the run.
        rank: the rank.
        files: all finished checkpoints of the run, by the path that is loaded for them.
        of_kind: those of them from which the plan has the job go on.
    """
    reads = [_read(history, artifacts, files, load) for load in loads_made(history, rank)]
    steps = {read.step for read in reads}
    if len(steps) > 1 or None in steps:
        reads = _decided(history, rank, reads, set(of_kind.values())) or reads
    return [read.load for read in reads]


def of_several_steps(history: History, artifacts: Artifacts, loads: Iterable[Event], files: Files) -> list[Event]:
    """Return the loads of the ranks among whose loads are files of several steps."""
    by_rank: dict[int | None, list[Read]] = defaultdict(list)
    for load in loads:
        by_rank[load.rank].append(_read(history, artifacts, files, load))
    return [read.load for reads in by_rank.values() if len({read.step for read in reads}) > 1 for read in reads]


def loads_listed(history: History, artifacts: Artifacts, loads: Iterable[Event], files: Files) -> str:
    """Return loads in words, each with its rank, its file and its step."""
    return text_list((_words(artifacts, _read(history, artifacts, files, load)) for load in loads), _LISTED)


def _words(artifacts: Artifacts, read: Read) -> str:
    file = artifacts.recorded(str(read.load.data.get("path")))
    return f"rank {read.load.rank} loaded {file} ({'no known step' if read.step is None else f'step {read.step}'})"


def _read(history: History, artifacts: Artifacts, files: Files, load: Event) -> Read:
    path = located(history, artifacts, str(load.data.get("path")))
    file = None if path is None else files.get(path)
    if file is None or is_of_this_run(history, str(load.data.get("path"))) is not True:
        return Read(load, None, None, None)
    try:
        return Read(load, file, state_at_resume(history, artifacts, file), step_at_resume(history, artifacts, file))
    except CheckpointError:
        return Read(load, file, None, None)


def _decided(history: History, rank: int, reads: list[Read], expected: Collection[OwnedCheckpoint]) -> list[Read]:
    """Return the loads whose file is the rank's state; none where that is not clear."""
    initial = history.first("initial", attempt=RESUME, rank=rank)
    held = initial.data.get("parameters") if initial is not None else None
    if not isinstance(held, dict) or not held:
        return []
    names = {name for name in held if not (is_flag(name) or is_appended(name))}
    equal = {id(read): _equal(_of_one_save(read, reads), rank, held, names) for read in reads}
    most = max(equal.values(), default=0)
    best = [read for read in reads if most and equal[id(read)] == most]
    best = [read for read in best if read.file in expected] or best
    if len({read.step for read in best}) != 1:
        return []
    # What cannot be read may be what the rank holds, unless another file is that to the last value.
    if most < len(names) and any(read.state is None for read in reads):
        return []
    outside = [read for read in reads if is_of_this_run(history, str(read.load.data.get("path"))) is not True]
    return [read for read in reads if read in best or read in outside]


def _of_one_save(read: Read, reads: Iterable[Read]) -> list[Read]:
    """Return the loads of the files that are parts of one save, this one among them."""
    file = read.file
    parts = [other for other in reads if file is not None and other.file is not None and other.file != file]
    return [read, *(other for other in parts if file is not None and other.file and _together(file, other.file))]


def _together(file: OwnedCheckpoint, other: OwnedCheckpoint) -> bool:
    return are_of_one_save(file, other) or are_of_one_directory(file, other)


def _equal(parts: Iterable[Read], rank: int, held: Mapping[str, str], names: Iterable[str]) -> int:
    """Return how many parameters of the rank are those of the files."""
    states = [as_held(read.state, rank, held).digests for read in parts if read.state is not None]
    return sum(any(digests.get(name) == held[name] for digests in states) for name in names)
