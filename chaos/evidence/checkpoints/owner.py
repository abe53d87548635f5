"""The rank that owns a checkpoint file: by its directory ``rank_R`` or, elsewhere, by known facts about the file.

Known facts are stored in the file (``cur_rank``) or beside it (``metadata.json`` of MindFormers' new layout), or are
the ranks' records of their saves. The rank in a file's name counts where none of these is known, and may not contradict
them. Among several ranks that have saved a file under one name, the content decides. Where the owner cannot be
determined, no check may judge the file as a rank's, and each check that would have to is *unknown*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_background, is_late
from chaos.evidence.checkpoints.damage import as_saved
from chaos.evidence.checkpoints.stored import COUNTER, STEP, steps_by_name
from chaos.evidence.checkpoints.whole import holds
from chaos.evidence.facts import RESUME, TRAIN, is_of_this_run, ranks_text
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.layout import CheckpointFile, Kind, rank_in_name
from chaos.observe.checkpoints.mindformers_layout import ITERATION, PART
from chaos.observe.checkpoints.mindformers_records import METADATA, Storage
from chaos.observe.checkpoints.mindformers_state import optimizer_of, storage_of
from chaos.observe.checkpoints.registered import directory_marks, mark_of
from chaos.observe.checkpoints.saved_state import SavedState

REMEMBERED = "checkpoint.remembered"
"""The harness's record of a file whose name does not tell its step, made before the resume."""

_SAVES = ("checkpoint.begin", "checkpoint.end")
_FORMATS = ("", ".safetensors", ".ckpt")
"""MindSpore adds the format to a name that has none."""

_NOTHING = "no rank has recorded saving it, and neither its name nor its content identifies the rank"


@dataclass(frozen=True)
class OwnedCheckpoint(CheckpointFile):
    """A finished file with a known owner.

    ``steps`` are the steps at which the rank recorded a save of it, as far as the file may hold them now, and ``held``
    the steps of the saved states, by the rank's progress; none where its record does not tell. ``optimizer`` is the
    file beside it with the optimizer's state, in MindFormers' new layout. ``made`` is the record of the save that made
    the present file; None where there is none, or where several saves may have made it. ``shared``: ranks read parts of
    each other's files; a directory that is one checkpoint is owned by each rank that has saved it.
    """

    rank: int
    shared: bool = False
    steps: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    optimizer: Path | None = None
    made: Event | None = field(default=None, compare=False)


@dataclass(frozen=True)
class OwnerUnknown:
    """A finished file whose owner cannot be determined, and why."""

    path: Path
    kind: Kind
    reason: str


@dataclass(frozen=True)
class Owners:
    """The finished checkpoint files of a run, ordered by path.

    ``outside`` are recorded saves of files outside the run's directory, which cannot be read. ``removed`` are files
    that were there when the job was started again, and that it has removed since: the harness has recorded their
    content.
    """

    owned: tuple[OwnedCheckpoint, ...]
    unowned: tuple[OwnerUnknown, ...]
    outside: tuple[Event, ...]
    removed: tuple[OwnedCheckpoint, ...] = ()


@dataclass
class _Saves:
    """The ranks' records of their saves, by the file that is there now."""

    of: dict[Path, list[Event]] = field(default_factory=lambda: defaultdict(list))
    outside: list[Event] = field(default_factory=list)


def owners_of(history: History, artifacts: Artifacts) -> Owners:
    """Return every finished checkpoint file that the job left, under any name and in any place, with its owner."""
    _ = artifacts.checkpoints  # every caller learns what could not be searched, also where the answer is cached
    if artifacts.owners is None or artifacts.owners[0] is not history:
        artifacts.owners = (history, _sort(history, artifacts))
    return artifacts.owners[1]


def _sort(history: History, artifacts: Artifacts) -> Owners:
    saves = _recorded(history, artifacts)
    named = {file.path: file for file in artifacts.checkpoints}
    storages = _storages(named)
    optimizers = {file.path: optimizer_of(file.saved_as, storages.get(file.path.parent)) for file in named.values()}
    beside = set(optimizers.values())
    others = [_other(path) for path in saves.of if path not in named and path not in beside]
    owned: list[OwnedCheckpoint] = []
    unowned: list[OwnerUnknown] = []
    for file in sorted([*named.values(), *others], key=lambda checkpoint: checkpoint.path):
        if file.temporary:
            continue
        events = saves.of.get(file.path, [])
        owners = _owners(file, events, history, artifacts, storages.get(file.path.parent))
        if isinstance(owners, str):
            unowned.append(OwnerUnknown(file.path, file.kind, owners))
            continue
        owned += (_owned(file, owner, events, history, optimizers.get(file.path)) for owner in owners)
    removed = tuple(_removed(history, artifacts, named.keys() | saves.of.keys()))
    return Owners(tuple(owned), tuple(unowned), tuple(saves.outside), removed)


def _owned(
    file: CheckpointFile, owner: int, events: Sequence[Event], history: History, optimizer: Path | None = None
) -> OwnedCheckpoint:
    """Return a file with its owner, by the records of its saves."""
    last = _last([event for event in events if event.rank == owner])
    values: dict[str, Any] = {attribute.name: getattr(file, attribute.name) for attribute in fields(CheckpointFile)}
    values |= {"rank": owner, "steps": _steps(last), "held": _held(last, history), "optimizer": optimizer}
    values["made"] = last[0] if len(last) == 1 and not is_background(last[0]) else None
    values["shared"] = _is_whole_directory(file) or _has_metadata(file)
    return OwnedCheckpoint(**values)


def _removed(history: History, artifacts: Artifacts, there: Collection[Path]) -> Iterator[OwnedCheckpoint]:
    """Yield the remembered files that are not there any more; of a file that several ranks have saved nothing is known.

    The saves until the resume have made them.
    """
    for place in dict.fromkeys(str(record.data.get("path")) for record in history.select(REMEMBERED, attempt=RESUME)):
        path = artifacts.run_dir / place
        if path in there or ".." in path.parts:
            continue
        saves = [event for name in _SAVES for event in history.select(name, attempt=TRAIN, kind="periodic")]
        saves = [event for event in saves if place in _places(artifacts, str(event.data.get("path")))]
        file, savers = _other(path), sorted({event.rank for event in saves if event.rank is not None})
        if len(savers) == 1 or _is_whole_directory(file):
            saves.sort(key=lambda event: (event.mono, event.seq))
            yield from (_owned(file, saver, saves, history) for saver in savers)


def _places(artifacts: Artifacts, recorded: str) -> tuple[str, ...]:
    """Return the paths in the run's directory of the files by which a recorded file, or directory, may be known."""
    job = artifacts.relative(artifacts.job_dir)
    place = artifacts.recorded(recorded) if recorded.startswith("/") else f"{job}/{recorded}"
    return place, *(f"{place}/{mark}" for mark in directory_marks())


def located(history: History, artifacts: Artifacts, recorded: str) -> Path | None:
    """Return the file that was loaded under a recorded path: the kept one, or one that was removed since."""
    path = as_saved(history, recorded)
    if (kept := artifacts.locate(path)) is not None or is_of_this_run(history, path) is not True:
        return kept
    places = _places(artifacts, path)
    removed = (file.path for file in owners_of(history, artifacts).removed)
    return next((file for file in removed if artifacts.relative(file) in places), None)


def _recorded(history: History, artifacts: Artifacts) -> _Saves:
    saves = _Saves()
    for event in sorted(
        (fact for name in _SAVES for fact in history.select(name)), key=lambda fact: (fact.mono, fact.seq)
    ):
        path = event.data.get("path")
        if not isinstance(path, str) or event.rank is None:
            continue
        if is_of_this_run(history, path) is False:
            if event.event == "checkpoint.end":
                saves.outside.append(event)
            continue
        kept = kept_of(event, artifacts)
        if kept is not None:
            saves.of[kept].append(event)
    return saves


def kept_of(save: Event, artifacts: Artifacts) -> Path | None:
    """Return the file that lies now where a save was recorded; None where there is none.

    A directory that is one checkpoint is known by one of its files, whichever of them was recorded; unfinished, it is
    none.
    """
    path = str(save.data.get("path"))
    if (mark := mark_of(Path(path))) is not None:
        return artifacts.locate(str(mark))
    return next((kept for end in _FORMATS if (kept := artifacts.locate(path + end)) is not None), None)


def _storages(paths: Iterable[Path]) -> dict[Path, Storage | None]:
    """Return ``metadata.json`` of every save of MindFormers' new layout, read once for all files beside it."""
    storages: dict[Path, Storage | None] = {}
    for directory in {path.parent for path in paths if ITERATION.fullmatch(path.parent.name)}:
        try:
            storages[directory] = storage_of(directory)
        except CheckpointError:  # chaos.checks.checkpoint.save_records says so
            storages[directory] = None
    return storages


def _other(path: Path) -> CheckpointFile:
    """Return a file with a name of the job's own, known only by the record of the save."""
    return CheckpointFile(path, None, None, None, None, False, "either", rank_in_name(path.stem))


def _owners(
    file: CheckpointFile,
    saves: Sequence[Event],
    history: History,
    artifacts: Artifacts,
    storage: Storage | None,
) -> list[int] | str:
    """Return the owning ranks, or why they cannot be determined; only a directory has several."""
    if _is_whole_directory(file):
        return sorted({event.rank for event in saves if event.rank is not None}) or _NOTHING
    if file.rank is not None and file.epoch is not None and file.in_rank_directory:
        return [file.rank]
    owner = _owner(file, saves, history, artifacts, storage)
    return [owner] if isinstance(owner, int) else owner


def _is_whole_directory(file: CheckpointFile) -> bool:
    """Return whether a file stands for its directory, which is one checkpoint of all ranks that have saved it."""
    return file.saved_as.name in directory_marks()


def _has_metadata(file: CheckpointFile) -> bool:
    """Return whether ``metadata.json`` in MindFormers' new layout names the file of each part of a parameter.

    Source: MindFormers 2.1, checkpoint/reshard.py.
    """
    return ITERATION.fullmatch(file.path.parent.name) is not None and file.path.with_name(METADATA).exists()


def _owner(
    file: CheckpointFile,
    saves: Sequence[Event],
    history: History,
    artifacts: Artifacts,
    storage: Storage | None,
) -> int | str:
    """Return the owning rank, or why it cannot be determined."""
    part = ITERATION.fullmatch(file.path.parent.name) is not None
    state = None if part else _state(file, artifacts)
    claims = list(_beside(file, storage) if part else _inside(state))
    savers = sorted({event.rank for event in saves if event.rank is not None})
    named = file.name_rank
    if len(savers) == 1:
        claims.append((savers[0], f"rank {savers[0]} has recorded that it saved it"))
    elif savers:
        likely = {rank for rank, _ in claims} or (
            {named} if named is not None else _holders(file, state, savers, history, artifacts.steps_per_update)
        )
        chosen = [rank for rank in savers if rank in likely]
        # Of several ranks with the same content, the owner has saved this step: another may have been lost before.
        stored = _stored(state, artifacts.steps_per_update)
        chosen.sort(key=lambda rank: not stored & _steps(_last([event for event in saves if event.rank == rank])))
        if not chosen:
            return f"{ranks_text(savers)} have recorded that they saved it, and the owner of its content is unknown"
        claims.append((chosen[0], f"{ranks_text(savers)} have recorded that they saved it"))
    # In MindFormers' new layout the number in a part's name is no more than a hint: it may count files.
    if named is not None and not (claims and PART.fullmatch(file.saved_as.name)):
        if not claims and not any(history.first(name, rank=named) for name in ("rank.found", "agent.start")):
            return f"its name says rank {named}, but the job has no such rank as far as is known"
        claims.append((named, f"its name says rank {named}"))
    if len({rank for rank, _ in claims}) > 1:
        return ", but ".join(dict.fromkeys(words for _, words in claims))
    return claims[0][0] if claims else _NOTHING


def _state(file: CheckpointFile, artifacts: Artifacts) -> SavedState | None:
    try:
        return artifacts.read_checkpoint(file.path)
    except CheckpointError:  # the judge of the file says so
        return None


def _inside(state: SavedState | None) -> Iterator[tuple[int, str]]:
    rank = None if state is None else state.numbers.get("cur_rank")
    if rank is not None:
        yield rank, f"cur_rank {rank} is stored in it"


def _beside(file: CheckpointFile, storage: Storage | None) -> Iterator[tuple[int, str]]:
    rank = None if storage is None else storage.ranks.get(file.saved_as.name)
    if rank is not None:
        yield rank, f"{METADATA} beside it says rank {rank}"


def _holders(
    file: CheckpointFile, state: SavedState | None, savers: Iterable[int], history: History, every: int
) -> set[int]:
    """Return the savers whose state after the stored step is the file's content."""
    possible_steps = {} if state is None else steps_by_name(state.numbers, every)
    if state is None or not possible_steps:
        return set()
    return {
        rank
        for rank in savers
        for step in possible_steps.get(COUNTER, possible_steps.get(STEP, ()))
        for event in history.select("digest", rank=rank, step=step)
        if isinstance(theirs := event.data.get("parameters"), Mapping) and holds(file, state, theirs)
    }


def _stored(state: SavedState | None, every: int) -> set[int]:
    return set().union(*steps_by_name({} if state is None else state.numbers, every).values())


def _last(saves: Sequence[Event]) -> Sequence[Event]:
    """Return the saves that may have made the present file: the last one that has ended, and all that began after it.

    A file written in the background may be of any of them.
    """
    ended = [number for number, event in enumerate(saves) if event.event == "checkpoint.end"]
    return saves[ended[-1] :] if ended and not any(map(is_background, saves)) else saves


def _steps(saves: Iterable[Event]) -> frozenset[int]:
    return frozenset(step for event in saves if isinstance(step := event.data.get("step"), int))


def _held(saves: Iterable[Event], history: History) -> frozenset[int]:
    """Return the steps of the saved states: the rank's own step or, as long as it had not ended, the one before.

    A process that has loaded a state and not begun a step since records its last step, or none.
    """
    held: set[int] = set()
    for save in saves:
        step = save.data.get("step")
        if is_late(save) and isinstance(step, int):
            held.add(step)
            continue
        begun, ended, training = (before(save, event, history) for event in ("step.begin", "step.end", "train.begin"))
        if begun is None or begun.data.get("step") != step or not isinstance(step, int):
            return frozenset()
        if training is not None and training.seq > begun.seq:
            return frozenset()
        held |= {step} if ended is not None and ended.seq > begun.seq else {step - 1, step}
    return frozenset(held)


def before(save: Event, event: str, history: History) -> Event | None:
    """Return the last such event in the process's own record before the save."""
    events = history.select(event, attempt=save.attempt, rank=save.rank, pid=save.pid)
    return max((fact for fact in events if fact.seq < save.seq), key=lambda fact: fact.seq, default=None)
